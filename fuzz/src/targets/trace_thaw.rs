//! Bytes as a frozen connection: a file from another run may contain anything.

use trace::Connection;

/// Takes a frozen connection.
///
/// # Panics
/// If it is accepted, but cannot be printed or freezes to different bytes.
pub fn target(data: &[u8]) {
    let mut connection = Connection::default();
    if connection.thaw(data).is_err() {
        return;
    }
    let mut again = Vec::new();
    connection.freeze(&mut again);
    let mut other = Connection::default();
    other.thaw(&again).expect("what was frozen thaws");
    assert_eq!(format!("{connection:?}"), format!("{other:?}"));
    for direction in [&connection.a, &connection.b] {
        for share in [0.0, 0.5, 1.0] {
            let _ = direction.rtt_percentiles.at(share);
        }
        let _ = (direction.missed(), direction.rtt.deviation());
        let _ = direction.segments.has(0, u64::MAX);
    }
    let _ = (connection.elapsed(), connection.idle_max(i64::MAX));
}
