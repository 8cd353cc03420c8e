//! One subscriber: its last row, and recent values since it was opened.

use std::cell::Cell;
use std::time::Duration;

use serde_json::Value;

use crate::list::Move;
use crate::pace::Ring;
use crate::rows::{Subscriber, Who};

/// The subscriber that was opened.
#[derive(Debug)]
pub(crate) struct One {
    pub(crate) who: Who,
    /// The row `subscriber.detail/1`; none before the first reply, and after the subscriber is gone.
    pub(crate) row: Option<Value>,
    /// Rows `subscriber.ended/1`, newest first.
    pub(crate) ended: Vec<Value>,
    pub(crate) is_read: bool,
    pub(crate) rate_in: Ring,
    pub(crate) rate_out: Ring,
    pub(crate) drops: Ring,
    pub(crate) round_trip: Ring,
    /// The first visible line. Drawing knows the last one that it can be.
    pub(crate) first: Cell<usize>,
    before: Option<(Duration, Value)>,
}

impl One {
    /// The subscriber of a row, before the first reply.
    pub(super) fn new(row: &Subscriber) -> Self {
        Self {
            who: Who {
                key: row.key(),
                name: row.name.clone(),
            },
            row: None,
            ended: Vec::new(),
            is_read: false,
            rate_in: Ring::default(),
            rate_out: Ring::default(),
            drops: Ring::default(),
            round_trip: Ring::default(),
            first: Cell::new(0),
            before: None,
        }
    }

    /// Takes a reading.
    pub(super) fn take(&mut self, row: Option<Value>, ended: Vec<Value>, at: Duration) {
        let was_read = std::mem::replace(&mut self.is_read, true);
        let rate = |field: &str| {
            let (before_at, before) = self.before.as_ref()?;
            let now = row.as_ref()?;
            // The counters of another session of the same name start at 0.
            if before["session"]["id"] != now["session"]["id"] {
                return None;
            }
            let span = at.saturating_sub(*before_at).as_secs_f64();
            let count = |row: &Value| row["traffic"][field].as_u64();
            let rise = count(now)?.checked_sub(count(before)?)?;
            (span > 0.0).then(|| rise as f64 / span)
        };
        let rates = ["octets_in", "octets_out", "dropped"].map(rate);
        if was_read {
            let rings = [&mut self.rate_in, &mut self.rate_out, &mut self.drops];
            for (ring, rate) in rings.into_iter().zip(rates) {
                ring.push(rate);
            }
        }
        let round_trip = row.as_ref().and_then(round_trip);
        self.round_trip.push(round_trip);
        self.before = row.clone().map(|row| (at, row));
        self.row = row;
        self.ended = ended;
    }

    pub(super) fn scroll(&mut self, to: Move) {
        let first = self.first.get();
        self.first.set(match to {
            Move::Up => first.saturating_sub(1),
            Move::Down => first.saturating_add(1),
            Move::PageUp => first.saturating_sub(10),
            Move::PageDown => first.saturating_add(10),
            Move::Home => 0,
            Move::End => usize::MAX,
        });
    }
}

/// The round trip of the last LCP echo.
fn round_trip(row: &Value) -> Option<f64> {
    let places = [&row["echo_rtt_us"], &row["ppp"]["echo_rtt_us"]];
    places.into_iter().find_map(Value::as_f64)
}
