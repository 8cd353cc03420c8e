//! `cargo xtask`: the project's own checks and chores, in one small program with very few dependencies.
//!
//! `cargo xtask test` is the one command that checks the whole tree. [`steps`] lists its steps in order; each
//! check is a module of its own.
#![forbid(unsafe_code)]

mod arrows;
mod captures;
mod cargo;
mod dependencies;
mod dist;
mod docs;
#[cfg(test)]
mod forge;
mod functions;
mod fuzz;
mod kernel;
mod keys;
mod lexer;
mod links;
mod modules;
mod package;
mod packages;
mod page;
mod peers;
mod prometheus;
mod python;
mod run;
mod site;
mod sourced;
mod sources;
mod spdx;
mod steps;
mod tidy;
mod words;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask test [--without-peers]   every check and every test; with --without-peers, all but the interop tests
cargo xtask interop [NAME ...]       only the interop tests, or only those whose name contains one of the NAMEs
cargo xtask interop [--accel-ppp DIR] [--bngblaster DIR [--libdict DIR]] [NAME ...]
                                     builds these peers from folders with their sources, and runs their tests too
cargo xtask interop --measure [NAME ...]
                                     counts instructions beside Linux's kernel, pppd and accel-ppp, in guests
cargo xtask tidy                     only the checks that read the tree and build nothing
cargo xtask words [PATH]             lists phrases that words.txt bans; with --write, writes how many are left
cargo xtask arrows CRATE             prints the table of a crate's modules, in order, with the circles in it
cargo xtask fuzz TARGET|all [SECONDS]
                                     runs fuzz targets in libFuzzer, guided by coverage; needs a C++ compiler
cargo xtask fuzz TARGET|all --merge  adds found inputs with new coverage to the committed corpora
cargo xtask dist                     builds target/dist/headend, stripped, with its symbols in headend.debug beside it
cargo xtask dist --target T [--target T] [--sign KEY]
                                     builds static binaries, runs them, and writes target/release-files
cargo xtask dist --check-reproducible [--target T]
                                     builds the last commit twice in two directories, and compares the bytes
cargo xtask crates                   runs the examples of the library crates and builds their packages
cargo xtask site                     writes the pages as a site with search, to target/site
cargo xtask page                     builds the web page of the analyser, target/page/headend-trace.html, and tests it
cargo xtask python                   checks the Python wheel, in a virtual environment in target/python
cargo xtask python ray               the same, with the tests on Ray and on an S3 server
cargo xtask python wheels            builds the wheels that are published, in target/python/wheels
cargo xtask package deb|oci|test [--binary FILE]
                                     builds what people install in target/package; test checks it, in a clean root too
cargo xtask package files|life|live  only the checks of packaging/, only those of the Debian package that is built, or
                                     only those of it that need systemd
cargo xtask gen-captures [DIR] [--only NAME,...] [--scale F]
                                     writes the captures that benchmarks read, to target/captures or DIR";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] => steps::test(steps::Peers::Run),
        ["test", "--without-peers"] => steps::test(steps::Peers::LeaveOut),
        ["tidy"] => steps::tidy(),
        ["dist", rest @ ..] => match dist::Arguments::of(rest) {
            Some(arguments) => steps::dist(&arguments),
            None => return unclear(),
        },
        ["site"] => steps::site(),
        ["page"] => steps::page(),
        ["python"] => steps::python(""),
        ["python", kind @ ("ray" | "wheels")] => steps::python(kind),
        ["crates"] => steps::crates(),
        ["package", rest @ ..] => match package::run(rest) {
            Some(good) => good,
            None => return unclear(),
        },
        ["words"] => steps::words(""),
        ["words", path] => steps::words(path),
        ["arrows", krate] => steps::arrows(krate),
        ["fuzz", rest @ ..] => match fuzz::Arguments::of(rest) {
            Some(arguments) => steps::fuzz(&arguments),
            None => return unclear(),
        },
        ["interop", names @ ..] => steps::interop(names),
        ["gen-captures", rest @ ..] => captures::generate(rest),
        ["--help" | "-h" | "help"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => return unclear(),
    };
    if outcome {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// The words cannot be understood.
fn unclear() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}
