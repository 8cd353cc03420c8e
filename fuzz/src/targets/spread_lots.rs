//! Lots of segments from another machine, and the search for the first record of a range.

use trace::spread::{HEADER_LEN, Reducer, Start, is_divisible, next_record};
use trace::{Captures, Options};

/// Takes a lot; also a file's header and a window of the file.
///
/// # Panics
/// If a record is found outside the window, or in a file that cannot be divided.
pub fn target(data: &[u8]) {
    let options = Options {
        seed: Some(0),
        threads: Some(1),
        ..Options::default()
    };
    let plan = Captures::from_reader("lots", std::io::empty(), options).plan();
    let mut reducer = Reducer::new(&plan);
    if reducer.lot(0, &Start::default(), data).is_ok() {
        let part = reducer.finish((0, 1), vec!["lots".to_owned()], &[], Vec::new());
        assert!(part.is_ok(), "a lot that was read gives a part");
    }
    if let Some((header, window)) = data.split_at_checked(HEADER_LEN)
        && let Some(at) = next_record(header, window)
    {
        assert!(is_divisible(header) && at < window.len());
    }
}
