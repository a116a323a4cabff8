//! Prints the tables of a result and their columns as JSON, for `tools/generate.py`.

fn main() {
    println!("{}", sojourn_lab::column_catalogue_json());
}
