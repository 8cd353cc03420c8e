//! Bytes as the result file of a ping experiment: it is refused with a reason, or keeps its meaning when
//! written again.

use ping::text;

/// Takes a file.
///
/// # Panics
/// If a parsed file is written differently, or a refusal has no text.
pub fn target(data: &[u8]) {
    let outcome = match ping::file::read(data) {
        Ok(outcome) => outcome,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let written = write(&outcome);
    let again = ping::file::read(&written[..]).expect("what was written is read");
    assert!(again == outcome);
    assert!(write(&again) == written);
    for stream in &outcome.streams {
        assert_eq!(stream.rows().count(), stream.kept());
        assert!(!text::opening(&stream.plan).is_empty());
        let mut rows = Vec::new();
        text::csv(stream, "", &mut rows).expect("memory takes all");
        let closing = text::closing(&stream.plan.name, &stream.summary);
        assert!(closing.starts_with("--- "));
    }
}

fn write(outcome: &ping::Outcome) -> Vec<u8> {
    let mut out = Vec::new();
    ping::file::write(outcome, &mut out).expect("memory takes all");
    out
}
