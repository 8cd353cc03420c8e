//! What the rules of `docs/trace-differences.md` say, where no capture of the golden tests shows it.

use trace::{Analyzer, Config, Connection, FlowKey, Nobody, Segment};

const FIN: u16 = 1;
const SYN: u16 = 2;
const RST: u16 = 4;
const ACK: u16 = 16;

/// A conversation, one packet a millisecond.
struct Talk {
    analyzer: Analyzer,
    packets: u64,
    id: u16,
}

/// One packet. Fields that are not set are 0, except the window.
struct Said {
    from_a: bool,
    flags: u16,
    sequence: u32,
    ack: u32,
    length: u32,
    window: u16,
}

fn a(flags: u16, sequence: u32, ack: u32, length: u32) -> Said {
    Said {
        from_a: true,
        flags,
        sequence,
        ack,
        length,
        window: 1000,
    }
}

fn b(flags: u16, sequence: u32, ack: u32, length: u32) -> Said {
    Said {
        from_a: false,
        ..a(flags, sequence, ack, length)
    }
}

impl Said {
    fn window(self, window: u16) -> Said {
        Said { window, ..self }
    }
}

impl Talk {
    fn new() -> Talk {
        Talk {
            analyzer: Analyzer::new(Config::default()),
            packets: 0,
            id: 100,
        }
    }

    /// After the handshake: a at 101, b at 501.
    fn open() -> Talk {
        let mut talk = Talk::new();
        talk.say(a(SYN, 100, 0, 0));
        talk.say(b(SYN | ACK, 500, 101, 0));
        talk.say(a(ACK, 101, 501, 0));
        talk
    }

    fn say(&mut self, said: Said) {
        self.id += 1;
        self.say_again(said);
    }

    /// Sends it with the IP identification of the packet before.
    fn say_again(&mut self, said: Said) {
        self.packets += 1;
        let time = self.packets as i64 * 1_000_000;
        let (low, high) = ([1; 16], [2; 16]);
        let (key, _) = FlowKey::new(&low, 1, &high, 2, 0);
        let segment = Segment {
            number: self.packets,
            time,
            clock: time,
            key,
            from_low: said.from_a,
            version: 4,
            id: self.id,
            flags: said.flags,
            sequence: said.sequence,
            acknowledgment: said.ack,
            window: said.window,
            payload: said.length,
            captured: said.length,
            ..Segment::default()
        };
        self.analyzer.packet(&segment, &[], &mut Nobody);
    }

    fn end(mut self) -> Connection {
        self.analyzer.finish();
        let finished = self.analyzer.take_finished();
        let [only] = finished.as_slice() else {
            panic!("{} connections", finished.len());
        };
        let mut connection = Connection::default();
        connection.thaw(&only.octets).unwrap();
        connection
    }
}

#[test]
fn the_octet_of_a_probe_counts_as_sent_once_it_is_acknowledged() {
    let mut talk = Talk::open();
    talk.say(a(ACK, 101, 501, 50));
    talk.say(b(ACK, 501, 151, 0).window(0));
    talk.say(a(ACK, 151, 501, 1));
    let mut refused = Talk::open();
    refused.say(a(ACK, 101, 501, 50));
    refused.say(b(ACK, 501, 151, 0).window(0));
    refused.say(a(ACK, 151, 501, 1));
    // Here the probe's octet is taken, there it is not, and comes again as data.
    talk.say(b(ACK, 501, 152, 0));
    refused.say(b(ACK, 501, 151, 0).window(0));
    refused.say(b(ACK, 501, 151, 0));
    refused.say(a(ACK, 151, 501, 30));
    refused.say(b(ACK, 501, 181, 0));
    let (taken, refused) = (talk.end(), refused.end());
    for connection in [&taken, &refused] {
        let a = &connection.a;
        assert_eq!((a.probe_packets, a.probe_bytes), (1, 1));
        assert_eq!((a.retransmitted_packets, a.rtt_ambiguous.count), (0, 0));
    }
    assert_eq!(taken.a.unique_bytes, 51);
    assert_eq!(refused.a.unique_bytes, 80);
    // SYN, 50 octets, and those sent after the window opened.
    assert_eq!((taken.a.rtt.count, refused.a.rtt.count), (2, 3));
}

#[test]
fn full_segments_into_a_zero_window_are_data_and_their_resends_count() {
    let mut talk = Talk::open();
    talk.say(b(ACK, 501, 101, 0).window(0));
    talk.say(a(ACK, 101, 501, 50));
    talk.say(a(ACK, 101, 501, 50));
    let a = talk.end().a;
    assert_eq!((a.probe_packets, a.unique_bytes), (0, 50));
    assert_eq!((a.retransmitted_packets, a.retransmitted_bytes), (1, 50));
}

#[test]
fn a_reset_acknowledges_what_was_sent_and_nothing_else() {
    let mut refused = Talk::new();
    refused.say(a(SYN, 100, 0, 0));
    refused.say(b(RST | ACK, 0, 101, 0));
    let refused = refused.end();
    assert_eq!(
        (refused.a.rtt.count, refused.a.rtt_handshake),
        (1, 1_000_000)
    );

    let mut forged = Talk::open();
    forged.say(a(ACK, 101, 501, 50));
    forged.say(b(RST | ACK, 501, 99_999, 0));
    forged.say(b(ACK, 501, 151, 0));
    let forged = forged.end();
    assert_eq!((forged.a.rtt.count, forged.a.rtt.max), (2, 2_000_000));
}

#[test]
fn an_acknowledgment_beyond_any_window_changes_nothing() {
    let mut talk = Talk::open();
    talk.say(a(ACK, 101, 501, 50));
    talk.say(b(ACK, 501, 0x5000_0000, 0));
    talk.say(a(ACK, 151, 501, 50));
    talk.say(b(ACK, 501, 201, 0));
    let a = talk.end().a;
    assert_eq!(a.owin.max, 100);
    assert_eq!(a.rtt.count, 2);
}

#[test]
fn a_copy_is_counted_as_a_packet_and_nothing_more() {
    let mut talk = Talk::open();
    talk.say(a(ACK, 101, 501, 50));
    talk.say_again(a(ACK, 101, 501, 50));
    talk.say(b(ACK, 501, 151, 0));
    talk.say_again(b(ACK, 501, 151, 0));
    let connection = talk.end();
    let (a, b) = (&connection.a, &connection.b);
    assert_eq!((a.packets, a.data_packets, a.data_bytes), (4, 2, 100));
    assert_eq!((a.unique_bytes, a.retransmitted_packets), (50, 0));
    assert_eq!((a.rtt.count, a.duplicate_acks), (2, 0));
    assert_eq!((a.hardware_duplicates, b.hardware_duplicates), (1, 1));
    assert_eq!((b.ack_packets, b.pure_acks), (3, 2));
}

#[test]
fn neither_fin_nor_reset_nor_keep_alive_is_a_duplicate_acknowledgment() {
    let mut talk = Talk::open();
    talk.say(a(ACK, 101, 501, 50));
    talk.say(b(ACK, 501, 151, 10));
    talk.say(a(ACK, 151, 511, 0));
    // b asks whether a is there, and a answers; then b closes, and a resets.
    talk.say(b(ACK, 510, 151, 0));
    talk.say(a(ACK, 151, 511, 0));
    talk.say(b(FIN | ACK, 511, 151, 0));
    talk.say(a(RST | ACK, 151, 511, 0));
    let connection = talk.end();
    let (a, b) = (&connection.a, &connection.b);
    assert_eq!((a.duplicate_acks, b.duplicate_acks), (0, 0));
    assert_eq!(b.keep_alives, 1);
}

#[test]
fn all_segments_that_are_sent_again_at_once_have_the_new_time() {
    let mut talk = Talk::open();
    talk.say(a(ACK, 101, 501, 50));
    talk.say(a(ACK, 151, 501, 50));
    talk.say(a(ACK, 101, 501, 100));
    talk.say(b(ACK, 501, 201, 0));
    let a = talk.end().a;
    assert_eq!((a.post_loss_acks, a.rtt_ambiguous.count), (0, 1));
    assert_eq!(a.rtt_ambiguous.max, 1_000_000);
}

#[test]
fn a_stream_that_was_reset_after_its_fin_ends_at_the_fin() {
    let mut talk = Talk::open();
    talk.say(a(ACK, 101, 501, 50));
    talk.say(a(FIN | ACK, 151, 501, 0));
    talk.say(a(RST, 152, 0, 0));
    let a = talk.end().a;
    assert_eq!((a.stream_length(), a.missed()), (Some(50), Some(0)));

    let mut at_once = Talk::new();
    at_once.say(self::a(SYN | FIN, 100, 0, 0));
    let a = at_once.end().a;
    assert_eq!((a.stream_length(), a.missed()), (Some(0), Some(0)));
}
