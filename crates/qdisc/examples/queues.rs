//! Prints the catalogue of the queue disciplines as JSON, for `tools/generate.py`.

fn main() {
    println!("{}", sojourn_qdisc::catalogue_json(None));
}
