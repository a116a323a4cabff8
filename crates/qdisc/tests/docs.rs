//! The pages in `docs/qdiscs` have the sections that readers expect; `make check` compares their tables.

use std::fs;
use std::path::PathBuf;

use sojourn_qdisc::catalogue;

#[test]
fn every_discipline_has_a_page_with_all_sections() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/qdiscs");
    for kind in catalogue() {
        let page = kind.page.unwrap();
        let text = fs::read_to_string(folder.join(format!("{page}.md"))).unwrap();
        for section in [
            "## Description",
            "## Algorithm",
            "## Parameters",
            "## Differences",
            "## Validation",
            "## Cost",
        ] {
            assert!(text.contains(section), "{page}.md lacks {section}");
        }
    }
}
