//! The result for a connection: both directions, how far each end is away, and what single packets show. The command,
//! the web page and the Python package all show this.

use core::net::IpAddr;

use super::cause::{CAUSES, Cause};
use super::findings::Findings;
use super::sender::Share;
use super::verdict::Verdict;
use crate::connection::Connection;
use crate::direction::Direction;

/// One direction's division of time, and the result.
#[derive(Debug, Clone)]
pub struct Side {
    /// The result.
    pub verdict: Verdict,
    /// Time by [`Cause`].
    pub shares: [Share; CAUSES],
    /// Payload bytes, each byte of the stream once.
    pub bytes: u64,
}

impl Side {
    /// Name of the direction.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self.verdict.from_a {
            true => "a2b",
            false => "b2a",
        }
    }

    /// Time of the main cause, if it slowed the sender down.
    #[must_use]
    pub fn lost(&self) -> i64 {
        match self.verdict.cause.is_limit() {
            true => self.verdict.share.time,
            false => 0,
        }
    }
}

/// A connection's result.
#[derive(Debug, Clone)]
pub struct Report {
    /// Number of the connection.
    pub number: u64,
    /// Address and port of end `a`.
    pub a: (IpAddr, u16),
    /// Address and port of end `b`.
    pub b: (IpAddr, u16),
    /// Time of the first packet, in nanoseconds since 1970.
    pub first_time: i64,
    /// Time from the first packet to the last.
    pub life: i64,
    /// Round trip between the point of capture and end `a`, in nanoseconds.
    pub to_a: Option<i64>,
    /// Round trip between the point of capture and end `b`.
    pub to_b: Option<i64>,
    /// The directions that sent data: first that of end `a`.
    pub sides: Vec<Side>,
    /// What single packets show.
    pub findings: Findings,
}

impl Report {
    /// The result for a connection; `None` if neither end sent data, or without
    /// [`Options::why`](crate::Options::why).
    #[must_use]
    pub fn new(connection: &Connection) -> Option<Report> {
        let why = connection.why.as_ref()?.until(connection.last_time);
        let side = |from_a: bool| {
            let (sender, direction) = match from_a {
                true => (&why.a, &connection.a),
                false => (&why.b, &connection.b),
            };
            Some(Side {
                verdict: Verdict::new(connection, &why, from_a)?,
                shares: *sender.shares(),
                bytes: direction.unique_bytes,
            })
        };
        let sides: Vec<Side> = [side(true), side(false)].into_iter().flatten().collect();
        if sides.is_empty() {
            return None;
        }
        Some(Report {
            number: connection.number,
            a: connection.a_end(),
            b: connection.b_end(),
            first_time: connection.first_time,
            life: connection.elapsed(),
            to_a: near(&connection.b),
            to_b: near(&connection.a),
            sides,
            findings: connection.findings()?,
        })
    }

    /// Time that something else than the ends' own work took, of the direction where it is most.
    #[must_use]
    pub fn lost(&self) -> i64 {
        let lost = |side: &Side| {
            let limits = Cause::all().filter(|cause| cause.is_limit());
            limits.map(|cause| side.shares[cause as usize].time).sum()
        };
        self.sides.iter().map(lost).max().unwrap_or(0)
    }

    /// The direction that explains the connection: the one with more time lost, or else with more data.
    #[must_use]
    pub fn main(&self) -> Option<&Side> {
        let sides = self.sides.iter();
        // Of equal sides the first counts, so that the answer does not depend on the order of comparisons.
        sides.rev().max_by_key(|side| (side.lost(), side.bytes))
    }
}

/// Round trip between the point of capture and the end that acknowledges this direction.
fn near(direction: &Direction) -> Option<i64> {
    let time = match direction.rtt_handshake {
        0 => direction.rtt.min,
        time => time,
    };
    (time > 0).then_some(time)
}
