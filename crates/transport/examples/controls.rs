//! Prints the catalogue of the congestion controls as JSON, for `tools/generate.py`.

fn main() {
    println!("{}", sojourn_transport::cc::spec::catalogue_json());
}
