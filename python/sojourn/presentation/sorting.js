
"use strict";
// Makes the headings of sortable tables buttons. Without this script, tables are in their order.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, column) => {
    const cell = row.cells[column];
    const text = cell.dataset.value ?? cell.textContent;
    return text !== "" && isFinite(text) ? Number(text) : text;
  };
  const compare = (one, other) =>
    typeof one === "number" && typeof other === "number"
      ? one - other
      : String(one).localeCompare(String(other), undefined, { numeric: true });
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const rows = [...table.tBodies[0].rows].map((row) => [key(row, column), row]);
      // Missing values are last in both orders.
      rows.sort(([one], [other]) =>
        one === "" || other === "" ? (one === "") - (other === "") : sign * compare(one, other));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    });
  });
}
