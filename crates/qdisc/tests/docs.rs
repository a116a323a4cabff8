//! The pages in `docs/qdiscs` say what the catalogue says.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use sojourn_qdisc::{QdiscInfo, catalogue};

/// The parameters of a discipline as its page shows them.
fn table(kind: &QdiscInfo) -> String {
    let mut table = String::from("| key | default | allowed | meaning |\n|---|---|---|---|\n");
    for p in &kind.parameters {
        let (key, default, range, meaning) = (p.key, &p.default, &p.range, p.meaning);
        writeln!(table, "| `{key}` | {default} | {range} | {meaning} |").unwrap();
    }
    table
}

#[test]
fn every_discipline_has_a_page_with_its_parameters() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/qdiscs");
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    for kind in catalogue() {
        let name = kind.name;
        let page = match name {
            "bfifo" | "pfifo_head_drop" => "pfifo",
            "ared" => "red",
            "fq_nocodel" => "fq_codel",
            "nlred" => "red_ns2",
            "afcd_kernel2012" => "afcd",
            "afq_kernel2012" | "afq" => "afd",
            "floq_share" | "floq_fixed" | "floq_protect" => "floq",
            own => own,
        };
        assert!(
            index.contains(&format!("| [`{name}`]({page}.md) | {} |", kind.summary)),
            "README.md lacks {name}: {}",
            kind.summary
        );
        let text = fs::read_to_string(folder.join(format!("{page}.md"))).unwrap();
        for section in [
            "## Description",
            "## Law",
            "## Parameters",
            "## Differences",
            "## Validation",
            "## Cost",
        ] {
            assert!(text.contains(section), "{page}.md lacks {section}");
        }
        // An alias has its page's parameters and says in words which defaults differ.
        let alias = page != name && page != "pfifo";
        assert!(
            alias || text.contains(&table(&kind)),
            "{page}.md should contain\n{}",
            table(&kind)
        );
    }
}
