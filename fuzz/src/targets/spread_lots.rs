//! Lots of segments from another machine, and the search for the first record of a range.

use trace::spread::{Reducer, Start, header, next_record};
use trace::{Captures, Options};

/// Takes a lot; also the start of a file, and a window of it.
///
/// # Panics
/// If a record is found outside the window.
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
    // The data may begin with a header, and contain a record after it.
    let header = header(data);
    let headers = [header.as_deref(), data.get(..24)];
    for header in headers.into_iter().flatten() {
        for window in [data, &data[data.len().min(24)..]] {
            assert!(next_record(header, window).is_none_or(|at| at < window.len()));
        }
    }
}
