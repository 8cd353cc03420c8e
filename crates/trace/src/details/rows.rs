//! Columns over time, losses and windows of round trips as rows: one for each connection, time and direction.

use super::{Details, IntervalSide};
use crate::Connection;

/// A value of a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// A number.
    Number(u64),
    /// A time in nanoseconds since 1970.
    Time(i64),
    /// `a2b` or `b2a`.
    Direction(&'static str),
    /// Why a loss was found: [`LossCause::name`](super::LossCause::name).
    Cause(&'static str),
    /// A mean.
    Real(f64),
    /// No value.
    Absent,
}

/// Names of an interval's values, in order.
pub const INTERVAL: [&str; 16] = [
    "connection",
    "direction",
    "time",
    "width_ns",
    "packets",
    "bytes",
    "retransmitted_packets",
    "retransmitted_bytes",
    "out_of_order_packets",
    "ce_packets",
    "in_flight_max",
    "rtt_count",
    "rtt_min_ns",
    "rtt_avg_ns",
    "rtt_max_ns",
    "window_min",
];

const SIDES: [&str; 2] = ["a2b", "b2a"];

/// Calls `take` with the values of each interval and direction in which something happened.
///
/// # Errors
/// Those of `take`.
pub fn each<E>(
    connection: &Connection,
    mut take: impl FnMut(&[Value; INTERVAL.len()]) -> Result<(), E>,
) -> Result<(), E> {
    let details = connection.details.as_deref();
    let Some(intervals) = details.and_then(|details| details.intervals.as_ref()) else {
        return Ok(());
    };
    let width = intervals.width();
    for (time, interval) in intervals.iter() {
        for (name, side) in SIDES.into_iter().zip([&interval.a, &interval.b]) {
            if *side == IntervalSide::default() {
                continue;
            }
            let maybe = |value: Option<u64>| value.map_or(Value::Absent, Value::Number);
            let sampled = |value: i64| maybe((side.rtt_count > 0).then_some(value.unsigned_abs()));
            let average = match side.rtt_count {
                0 => Value::Absent,
                count => Value::Real(side.rtt_sum as f64 / count as f64),
            };
            take(&[
                Value::Number(connection.number),
                Value::Direction(name),
                Value::Time(time),
                Value::Number(width.unsigned_abs()),
                Value::Number(side.packets),
                Value::Number(side.bytes),
                Value::Number(side.retransmitted_packets),
                Value::Number(side.retransmitted_bytes),
                Value::Number(side.out_of_order_packets),
                Value::Number(side.ce_packets),
                maybe(side.in_flight_max),
                Value::Number(side.rtt_count),
                sampled(side.rtt_min),
                average,
                sampled(side.rtt_max),
                maybe(side.window_min),
            ])?;
        }
    }
    Ok(())
}

/// Calls `take` with kind, names and values of each listed loss and each window of round trips.
///
/// # Errors
/// Those of `take`.
pub fn each_of_lists<E>(
    connection: &Connection,
    mut take: impl FnMut(&str, &[(&str, Value)]) -> Result<(), E>,
) -> Result<(), E> {
    let details = connection
        .details
        .as_deref()
        .filter(|details| details.is_noted());
    let Some(Details { a, b, .. }) = details else {
        return Ok(());
    };
    let number = Value::Number(connection.number);
    for (name, side) in SIDES.into_iter().zip([a, b]) {
        for loss in side.losses.list() {
            take(
                "loss",
                &[
                    ("connection", number),
                    ("direction", Value::Direction(name)),
                    ("time", Value::Time(loss.time)),
                    ("packet", Value::Number(loss.packet)),
                    ("sequence", Value::Number(loss.sequence.into())),
                    ("length", Value::Number(loss.length.into())),
                    ("cause", Value::Cause(loss.cause.name())),
                ],
            )?;
        }
        let width = side.round_trips.width().unsigned_abs();
        for (time, shortest) in side.round_trips.iter() {
            take(
                "rtt_window",
                &[
                    ("connection", number),
                    ("direction", Value::Direction(name)),
                    ("time", Value::Time(time)),
                    ("width_ns", Value::Number(width)),
                    ("rtt_min_ns", Value::Number(shortest.min.unsigned_abs())),
                    ("rtt_count", Value::Number(shortest.count)),
                ],
            )?;
        }
    }
    Ok(())
}
