//! Runs the fuzz targets in libFuzzer, guided by coverage. `cargo xtask fuzz` builds and starts this program.
//!
//! One program contains all targets. The environment variable `FUZZ_TARGET` names the target to run; with the value
//! `list`, the program prints all targets. libFuzzer provides the `main` function and the command line.
#![forbid(unsafe_code)]
#![no_main]

use std::sync::OnceLock;

use fuzz::{TARGETS, Target};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<&'static Target> = OnceLock::new();

/// The target that `FUZZ_TARGET` names.
fn chosen() -> &'static Target {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    if name == "list" {
        for target in TARGETS {
            println!("{} {} {}", target.name, target.len_max, target.is_slow);
        }
        std::process::exit(0);
    }
    Target::find(&name).unwrap_or_else(|| {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        panic!("FUZZ_TARGET is {name:?}; there are: {}", names.join(", "))
    })
}

fuzz_target!(
    init: {
        TARGET.get_or_init(chosen);
    },
    |input: &[u8]| (TARGET.get_or_init(chosen).run)(input)
);
