//! Reads a file with one section, and prints all its faults at once.
//!
//! `cargo run -p headend-settings --example read [FILE]`
#![forbid(unsafe_code)]

use std::process::ExitCode;

use settings::{Notes, Section, document};

const FAULTY: &str = "[link]\nmtu = 20\nuq = \"2mbit\"\n";

fn main() -> ExitCode {
    let text = match std::env::args_os().nth(1) {
        None => FAULTY.to_owned(),
        Some(path) => match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                eprintln!("{}: {error}", path.display());
                return ExitCode::FAILURE;
            }
        },
    };
    let notes = Notes::new(&text);
    let read = document(&notes).map(|root| {
        settings::only_sections(&root, 0, &["link"], &notes);
        let mut link = Section::open(&root, "link", &notes);
        let mtu = link.integer("mtu", 68..=65_535, "bytes");
        let up = link.string("up");
        link.finish();
        (mtu, up)
    });
    match notes.finish(read) {
        Ok((mtu, up)) => println!("mtu: {mtu:?}, up: {up:?}"),
        Err(faults) => println!("{faults}"),
    }
    ExitCode::SUCCESS
}
