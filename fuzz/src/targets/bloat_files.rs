//! Files of earlier runs of the bufferbloat test, from any host: flent's and our own.

use lab::bufferbloat::{Run, Verdict, accounts, document, page, read, read_flent, write_flent};

/// Takes a file.
///
/// # Panics
/// If a run that was read is written as another one, or a refusal has no text.
pub fn target(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    match read_flent(text) {
        Ok(run) => judge(&run),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match read(text) {
        Ok(runs) => runs.iter().for_each(|(_, run)| judge(run)),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn judge(run: &Run) {
    assert!(Verdict::of(&accounts(run)).sentence.ends_with('.'));
    let again = read(&document(&[("run", run)], None)).expect("what was written is read");
    assert!(again[0].1 == *run);
    assert!(read_flent(&write_flent(run, "run")).is_ok());
    assert!(page(&[("run", run)]).to_html().len() < 5_000_000);
}
