//! Sequence numbers of a text that was changed on its way.
//!
//! The client numbers its own text; the server numbers the text that it receives. Both agree up to the first change, and
//! differ by a constant behind it. A change is kept until the server has acknowledged it, because until then the client may
//! send that part again, cut into other segments. Inside a change, positions from its start agree as far as the shorter of
//! both texts goes, so that any cut of the client's text is a cut of the server's.

use super::command::Text;

/// Changes of one connection that the server has not acknowledged. A client waits for the reply to each command.
pub(crate) const CHANGES: usize = 4;

/// A part of the client's text and what the server receives instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Change {
    /// The client's number of its first octet.
    at: u32,
    /// How many octets of the client.
    length: u16,
    text: Text,
}

impl Change {
    fn new_length(&self) -> u32 {
        self.text.as_bytes().len() as u32
    }

    /// How much further the server's numbers are behind it.
    fn growth(&self) -> u32 {
        self.new_length().wrapping_sub(u32::from(self.length))
    }

    /// Where the server has what is this many octets behind the start.
    fn forward(&self, offset: u32) -> u32 {
        match offset == u32::from(self.length) {
            true => self.new_length(),
            false => offset.min(self.new_length()),
        }
    }
}

/// How far one sequence number is behind another (RFC 9293 section 3.4); negative if it is before.
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

/// The changes of one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Stream {
    /// How much further the server's numbers are than the client's before the first change that is kept.
    base: u32,
    changes: [Change; CHANGES],
    count: u8,
}

impl Stream {
    fn changes(&self) -> &[Change] {
        &self.changes[..usize::from(self.count)]
    }

    /// Whether both number alike, and nothing has to be changed again.
    pub(crate) fn is_plain(&self) -> bool {
        self.base == 0 && self.count == 0
    }

    /// Whether another change can be kept.
    pub(crate) fn has_room(&self) -> bool {
        usize::from(self.count) < CHANGES
    }

    /// Adds a change behind all others: of `length` octets from the client's number `at`.
    pub(crate) fn add(&mut self, at: u32, length: u16, text: Text) {
        if self.has_room() {
            self.changes[usize::from(self.count)] = Change { at, length, text };
            self.count += 1;
        }
    }

    /// The server's number for one of the client's.
    pub(crate) fn for_server(&self, number: u32) -> u32 {
        let mut delta = self.base;
        for change in self.changes() {
            let offset = distance(change.at, number);
            if offset <= 0 {
                break;
            }
            if offset as u32 <= u32::from(change.length) {
                let forward = change.forward(offset as u32);
                return change.at.wrapping_add(delta).wrapping_add(forward);
            }
            delta = delta.wrapping_add(change.growth());
        }
        number.wrapping_add(delta)
    }

    /// The client's number for one of the server's. Inside a change, the change is not acknowledged as a whole.
    pub(crate) fn for_client(&self, number: u32) -> u32 {
        let mut delta = self.base;
        for change in self.changes() {
            let offset = distance(change.at.wrapping_add(delta), number);
            if offset <= 0 {
                break;
            }
            if (offset as u32) < change.new_length() {
                let most = u32::from(change.length).saturating_sub(1);
                return change.at.wrapping_add(most.min(offset as u32));
            }
            delta = delta.wrapping_add(change.growth());
        }
        number.wrapping_sub(delta)
    }

    /// Forgets changes that the server has acknowledged by this number of its own, if the client has sent up to `sent`.
    pub(crate) fn acknowledge(&mut self, number: u32, sent: u32) {
        // A FIN has a number too.
        if distance(number, self.for_server(sent)) < -1 {
            return;
        }
        while let Some(first) = self.changes().first() {
            let end = first.at.wrapping_add(self.base);
            if distance(end.wrapping_add(first.new_length()), number) < 0 {
                break;
            }
            self.base = self.base.wrapping_add(first.growth());
            self.changes.rotate_left(1);
            self.count -= 1;
        }
    }

    /// Appends to `out` what the server receives for these octets of the client, which start at the client's number `at`.
    pub(crate) fn rewrite(&self, at: u32, octets: &[u8], out: &mut Vec<u8>) {
        let mut done = 0_usize;
        for change in self.changes() {
            let start = i64::from(distance(at, change.at));
            let from = start.max(done as i64);
            let to = (start + i64::from(change.length)).min(octets.len() as i64);
            if from >= to {
                continue;
            }
            out.extend_from_slice(&octets[done..from as usize]);
            let (first, last) = ((from - start) as u32, (to - start) as u32);
            let text = change.text.as_bytes();
            let (first, last) = (change.forward(first), change.forward(last));
            out.extend_from_slice(text.get(first as usize..last as usize).unwrap_or_default());
            done = to as usize;
        }
        out.extend_from_slice(&octets[done..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ftp::command::{Form, argument};
    use proptest::prelude::*;

    /// A client's text with two arguments, what the server is to receive, and the changes.
    fn session(
        start: u32,
        old: [(u32, u16); 2],
        new: [(u32, u16); 2],
    ) -> (Vec<u8>, Vec<u8>, Stream) {
        let (mut client, mut server) = (b"USER me\r\n".to_vec(), b"USER me\r\n".to_vec());
        let mut stream = Stream::default();
        for (old, new) in old.into_iter().zip(new) {
            let before = argument(Form::Port, old.0, old.1);
            let after = argument(Form::Port, new.0, new.1);
            client.extend(b"PORT ");
            let at = start.wrapping_add(client.len() as u32);
            stream.add(at, before.as_bytes().len() as u16, after);
            client.extend([before.as_bytes(), b"\r\nLIST\r\n"].concat());
            server.extend([b"PORT ", after.as_bytes(), b"\r\nLIST\r\n"].concat());
        }
        (client, server, stream)
    }

    proptest! {
        #[test]
        fn any_segments_of_the_client_give_the_server_one_text(
            start: u32,
            old: [(u32, u16); 2],
            new: [(u32, u16); 2],
            cuts in prop::collection::vec((any::<prop::sample::Index>(), 1_usize..30), 1..60),
        ) {
            let (client, server, stream) = session(start, old, new);
            let mut received = vec![None; server.len()];
            // Segments anywhere, and at last all in order.
            let anywhere = cuts.iter().map(|(at, length)| {
                let at = at.index(client.len());
                at..(at + length).min(client.len())
            });
            let all = (0..client.len()).step_by(cuts[0].1);
            let ordered = all.map(|at| at..(at + cuts[0].1).min(client.len()));
            for segment in anywhere.chain(ordered) {
                let number = start.wrapping_add(segment.start as u32);
                let mut out = Vec::new();
                stream.rewrite(number, &client[segment.clone()], &mut out);
                let at = stream.for_server(number).wrapping_sub(start) as usize;
                let end = start.wrapping_add(segment.end as u32);
                prop_assert_eq!(at + out.len(), stream.for_server(end).wrapping_sub(start) as usize);
                for (octet, to) in out.iter().zip(&mut received[at..]) {
                    prop_assert!(to.is_none_or(|before| before == *octet));
                    *to = Some(*octet);
                }
            }
            let received: Vec<u8> = received.into_iter().flatten().collect();
            prop_assert_eq!(received, server);
        }

        #[test]
        fn acknowledgements_never_cover_what_the_server_lacks(
            start: u32,
            old: [(u32, u16); 2],
            new: [(u32, u16); 2],
        ) {
            let (client, server, mut stream) = session(start, old, new);
            let sent = start.wrapping_add(client.len() as u32);
            let mut before = 0;
            for count in 0..=server.len() {
                let number = start.wrapping_add(count as u32);
                let known = stream.for_client(number).wrapping_sub(start) as usize;
                prop_assert!(known >= before, "they do not go back");
                let back = stream.for_server(start.wrapping_add(known as u32));
                prop_assert!(back.wrapping_sub(start) as usize <= count, "{known} of {count}");
                before = known;
                stream.acknowledge(number, sent);
                prop_assert_eq!(stream.for_client(number).wrapping_sub(start) as usize, known);
            }
            prop_assert_eq!(before, client.len());
            prop_assert_eq!(stream.count, 0);
            // Beyond what was sent: no sign of anything.
            let (_, _, mut stream) = session(start, old, new);
            stream.acknowledge(start.wrapping_add(server.len() as u32 + 2), sent);
            prop_assert_eq!(stream.count, 2);
        }
    }
}
