//! The shared library, loaded as Sojourn loads it.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};

use sojourn_plugin::host::Plugin;

#[test]
fn sojourn_loads_the_library() {
    let tests = std::env::current_exe().expect("the path of this program");
    // Cargo builds the library beside the tests.
    let file = tests.with_file_name(format!("{DLL_PREFIX}ramp{DLL_SUFFIX}"));
    let plugin = Plugin::load(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert_eq!(plugin.version(), env!("CARGO_PKG_VERSION"));
}
