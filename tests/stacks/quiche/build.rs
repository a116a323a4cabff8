//! Lets the linker give two functions to the test: what reads the clock, and what draws random numbers.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg-tests=-Wl,--wrap=clock_gettime,--wrap=RAND_bytes");
}
