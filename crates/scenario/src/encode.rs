//! Encodes a scenario as a tree of values: every key, in canonical units.
//!
//! What is inherited stays absent (an `rtt` that a block does not name), so that an arm which
//! sets the common value still reaches it.

use crate::decode::{Arm, Spec};
use crate::key::insert_changed;
use crate::traffic::{self, Block, Rtt, Way};
use crate::value::{Node, Table, Value, insert, list, table, time};

/// The canonical tree.
pub(crate) fn spec(spec: &Spec) -> Node {
    let mut table = without_arms(spec);
    if !spec.arms.is_empty() {
        let arms = spec.arms.iter().map(arm).collect();
        table.insert("arms".to_owned(), Value::List(arms).into());
    }
    Value::Table(table).into()
}

/// The canonical tree of the scenario that the arms begin from.
pub(crate) fn without_arms(spec: &Spec) -> Table {
    let mut top = table([
        ("name", spec.name.as_str().into()),
        ("duration", time(spec.duration)),
        ("warmup", time(spec.warmup)),
        ("replications", spec.replications.into()),
        ("seed", Value::Int(spec.seed).into()),
        ("sample", time(spec.sample)),
        ("rtt", time(spec.rtt)),
        ("keep_events", spec.keep_events.into()),
        ("links", Value::Table(spec.links.table()).into()),
        ("traffic", list(&spec.traffic, block)),
    ]);
    let pages = spec.pages.iter();
    let pages: Table = pages
        .map(|(name, page)| (name.clone(), page.tree.clone()))
        .collect();
    let any = !pages.is_empty();
    insert(&mut top, "pages", any.then(|| Value::Table(pages).into()));
    top
}

fn block(block: &Block) -> Node {
    let mut fields = table([
        ("type", block.kind.name().into()),
        ("name", block.name.as_str().into()),
        ("count", block.count.into()),
        ("start", time(block.start)),
        ("start_jitter", time(block.start_jitter)),
    ]);
    match &block.way {
        Way::Direction(direction) => {
            insert(&mut fields, "direction", Some(direction.name().into()));
        }
        Way::Path { path, back } => {
            let names = |names: &Vec<String>| list(names, |name| name.as_str().into());
            insert(&mut fields, "path", Some(names(path)));
            insert(&mut fields, "return", Some(names(back)));
        }
    }
    insert(&mut fields, "stop", block.stop.map(time));
    let rtt = match &block.rtt {
        Rtt::Common => None,
        Rtt::Own(rtt) => Some(time(*rtt)),
        Rtt::Each(rtts) => Some(list(rtts, |rtt| time(*rtt))),
    };
    insert(&mut fields, "rtt", rtt);
    let dscp = block.dscp.to_string().into();
    insert_changed(&mut fields, traffic::COMMON, "dscp", dscp);
    insert(&mut fields, "host", block.host.map(|n| u32::from(n).into()));
    block.kind.write(&mut fields);
    Value::Table(fields).into()
}

fn arm(arm: &Arm) -> Node {
    Value::Table(table([
        ("name", arm.name.as_str().into()),
        (
            "set",
            Value::Table(arm.set.iter().cloned().collect()).into(),
        ),
    ]))
    .into()
}
