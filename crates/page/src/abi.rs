//! The functions that JavaScript calls, and those it provides.
//!
//! JavaScript passes names as the JSON array of [`analyse`], in memory from [`room`]. Every function that has a text as
//! its result leaves it in one place and returns its length; [`answer`] returns the place. A length below 0 means that
//! the text is an error.
#![allow(
    unsafe_code,
    reason = "exports without a name mangled by Rust, and imports"
)]

use std::cell::RefCell;
use std::io::{self, Read};

use crate::{File, Session};

#[link(wasm_import_module = "headend")]
// SAFETY: glue.js provides these functions with these types, and `read` writes at most `room` bytes.
unsafe extern "C" {
    /// Starts to read a file; returns a handle.
    safe fn open(file: u32) -> u32;
    /// Reads up to `room` bytes; 0 at the end, -1 if the browser reports an error.
    safe fn read(handle: u32, to: *mut u8, room: u32) -> i32;
    /// Packets and connections so far.
    safe fn progress(packets: f64, connections: f64);
}

thread_local! {
    static INPUT: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static ANSWER: RefCell<String> = const { RefCell::new(String::new()) };
    static SESSION: RefCell<Option<Session>> = const { RefCell::new(None) };
}

/// A file that JavaScript reads.
struct Source(u32);

impl Read for Source {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let room = u32::try_from(out.len()).unwrap_or(u32::MAX);
        usize::try_from(read(self.0, out.as_mut_ptr(), room))
            .map_err(|_| io::Error::other("the browser cannot read the file"))
    }
}

/// Leaves a text as the answer; returns its length, below 0 for an error.
fn give(text: Result<String, String>) -> i32 {
    let sign = if text.is_ok() { 1 } else { -1 };
    let text = text.unwrap_or_else(|error| error);
    let length = i32::try_from(text.len()).unwrap_or(i32::MAX);
    ANSWER.set(text);
    sign * length
}

fn ask(question: impl FnOnce(&mut Session) -> Result<String, String>) -> i32 {
    give(SESSION.with_borrow_mut(|session| match session {
        Some(session) => question(session),
        None => Err("no capture has been read".to_owned()),
    }))
}

/// Memory for `length` bytes of input.
// SAFETY: no other symbol has this name; the same holds for all functions below.
#[unsafe(no_mangle)]
extern "C" fn room(length: u32) -> *mut u8 {
    INPUT.with_borrow_mut(|input| {
        *input = vec![0; length as usize];
        input.as_mut_ptr()
    })
}

/// The place of the last answer.
// SAFETY: see `room`.
#[unsafe(no_mangle)]
extern "C" fn answer() -> *const u8 {
    ANSWER.with_borrow(|answer| answer.as_ptr())
}

/// Starts to analyse the files whose names are in the input.
// SAFETY: see `room`.
#[unsafe(no_mangle)]
extern "C" fn analyse() {
    SESSION.set(None);
    let names: Vec<String> = INPUT
        .with_borrow(|input| serde_json::from_slice(input))
        .unwrap_or_default();
    let files = (0..).zip(names).map(|(at, name)| File {
        name,
        open: Box::new(move || Box::new(Source(open(at))) as _),
    });
    let counted = |packets: u64, connections: u64| progress(packets as f64, connections as f64);
    SESSION.set(Some(Session::new(files.collect(), counted)));
}

/// Starts the reading for the graphs of a connection.
// SAFETY: see `room`.
#[unsafe(no_mangle)]
extern "C" fn graph(at: u32) -> i32 {
    ask(|session| session.graph(at as usize).map(|()| String::new()))
}

/// Starts the reading for the UDP flows.
// SAFETY: see `room`.
#[unsafe(no_mangle)]
extern "C" fn udp() -> i32 {
    ask(|session| {
        session.udp();
        Ok(String::new())
    })
}

/// Reads the next block: 1 if there may be more, 0 at the end of all files. Below 0, the answer is an error.
// SAFETY: see `room`.
#[unsafe(no_mangle)]
extern "C" fn step() -> i32 {
    let more = SESSION.with_borrow_mut(|session| session.as_mut().map(Session::step));
    match more {
        Some(Ok(true)) => 1,
        Some(Ok(false)) | None => 0,
        Some(Err(error)) => give(Err(error)),
    }
}

/// Ends the reading, and leaves its results as the answer.
// SAFETY: see `room`.
#[unsafe(no_mangle)]
extern "C" fn finish() -> i32 {
    ask(Session::finish)
}

/// Rows of the list.
// SAFETY: see `room`.
#[unsafe(no_mangle)]
extern "C" fn rows(start: u32, count: u32) -> i32 {
    ask(|session| session.rows(start as usize, count as usize))
}

/// All about a connection.
// SAFETY: see `room`.
#[unsafe(no_mangle)]
extern "C" fn details(at: u32) -> i32 {
    ask(|session| session.details(at as usize))
}

/// The lines of `headend trace --json`.
// SAFETY: see `room`.
#[unsafe(no_mangle)]
extern "C" fn lines() -> i32 {
    ask(Session::lines)
}
