//! Which SYN starts another connection between the same ends (RFC 9293, 3.6.1 and 3.10.7.4).

use crate::connection::Connection;
use crate::segment::Segment;

/// Whether a SYN starts another connection. A closed connection is replaced by a SYN that is not a copy of its own
/// (RFC 9293 3.6.1 allows any sequence number, also inside the old window). A connection that has had several SYNs is
/// replaced by a SYN with yet another sequence number, and an established one by any other SYN.
#[cold]
pub(super) fn begins_another(connection: &Connection, segment: &Segment) -> bool {
    let from_a = segment.from_low == connection.a_is_low;
    let (this, other) = if from_a {
        (&connection.a, &connection.b)
    } else {
        (&connection.b, &connection.a)
    };
    let own = match (this.syn, this.first_sequence) {
        (Some(syn), _) => syn as u32 == segment.sequence,
        // The capture may have the SYN after its answer.
        (None, Some(first)) => first.wrapping_sub(1) == segment.sequence,
        (None, None) => false,
    };
    if own {
        return false;
    }
    let ended = this.fins > 0 || other.fins > 0 || connection.is_reset();
    if ended && !segment.ack() {
        return true;
    }
    if ended {
        let past = |bound: u32| segment.sequence.wrapping_sub(bound) as i32 > 0;
        let beyond = other.ack.is_some() && past(other.window_end);
        return beyond || this.syn.is_some_and(|syn| !past(syn as u32));
    }
    // An end whose SYN was answered sends no other one (RFC 9293 3.10.7.4), unless it has restarted. A SYN-ACK with
    // another number may answer the old SYN once more.
    let begun = this.ack.is_some() || this.segments.acked() > 0;
    let answers = segment.ack()
        && match other.syn {
            Some(syn) => (syn as u32).wrapping_add(1) == segment.acknowledgment,
            None => this.ack == Some(segment.acknowledgment),
        };
    (this.syns > 1 || begun) && !answers
}
