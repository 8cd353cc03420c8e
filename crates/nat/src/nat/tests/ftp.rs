//! Active FTP: RFC 959 section 4.1.2, RFC 2428 section 2, RFC 2018, RFC 5382 REQ-6.

use super::*;
use crate::Protocol;
use crate::nat::testing::{ACK, FIN, SYN, assert_sums, ends, fix_header, ip, read};

const CLIENT: (&str, u16) = (ANN, 4000);
const SERVER: (&str, u16) = (WEB, 21);

/// A segment with text, numbers, and options of a multiple of four octets.
fn segment(ends: Ends, flags: u8, numbers: (u32, u32), options: &[u8], text: &[u8]) -> Vec<u8> {
    let mut content = ends.from.1.to_be_bytes().to_vec();
    content.extend(ends.to.1.to_be_bytes());
    content.extend(numbers.0.to_be_bytes());
    content.extend(numbers.1.to_be_bytes());
    content.extend([(5 + options.len() as u8 / 4) << 4, flags, 1, 0, 0, 0, 0, 0]);
    content.extend(options);
    content.extend(text);
    let mut packet = ip(ends, 6, 0, &content);
    let pseudo = wire::checksum::pseudo_sum(&packet[12..20], 6, content.len());
    let own = wire::checksum::sum(&content);
    let sum = !wire::checksum::fold(u64::from(pseudo) + u64::from(own));
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
    packet
}

fn text(packet: &[u8]) -> &str {
    let start = 20 + usize::from(packet[32] >> 4) * 4;
    std::str::from_utf8(&packet[start..]).expect("ASCII")
}

fn number(packet: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(packet[at..at + 4].try_into().expect("four octets"))
}

/// Ann's control connection. Her text starts at number 1,000, the server's at 9,000.
struct Session {
    world: World,
    external: (Ipv4Addr, u16),
}

impl Session {
    fn open(config: Config) -> Self {
        let mut world = world(config);
        let syn = segment(ends(CLIENT, SERVER), SYN, (999, 0), &[], b"");
        let sent = send(&mut world, syn);
        let external = read(&sent).from;
        let mut session = Self { world, external };
        let mut answer = session.reply(SYN | ACK, 1000, &[], b"");
        assert_eq!(session.world.back(&mut answer), Ok(Verdict::Translated));
        session.client(1000, b"");
        session
    }

    fn reply(&self, flags: u8, acknowledged: u32, options: &[u8], text: &[u8]) -> Vec<u8> {
        let ends = between((address(WEB), 21), self.external);
        segment(ends, flags, (9000, acknowledged), options, text)
    }

    /// What the server receives for a segment of the client.
    #[track_caller]
    fn client(&mut self, at: u32, text: &[u8]) -> Vec<u8> {
        let packet = segment(ends(CLIENT, SERVER), ACK, (at, 9000), &[], text);
        send(&mut self.world, packet)
    }

    /// What the client receives for a segment of the server.
    #[track_caller]
    fn server(&mut self, acknowledged: u32, options: &[u8]) -> Vec<u8> {
        let mut packet = self.reply(ACK, acknowledged, options, b"200 ok\r\n");
        assert_eq!(self.world.back(&mut packet), Ok(Verdict::Translated));
        assert_sums(&packet, true);
        packet
    }

    /// The external endpoint of Ann's port.
    fn data(&self, port: u16) -> Option<(Ipv4Addr, u16)> {
        self.world
            .nat
            .external_of(Protocol::Tcp, address(ANN), port)
    }
}

#[track_caller]
fn send(world: &mut World, mut packet: Vec<u8>) -> Vec<u8> {
    let mut header = Header::read(&packet).expect("an IP packet");
    if world.nat.is_ftp(&header)
        && world
            .nat
            .outbound_ftp(world.ann, &header, &mut packet, world.now)
    {
        header = Header::read(&packet).expect("an IP packet");
    }
    let verdict = world
        .nat
        .outbound(world.ann, &header, &mut packet, Sum::Complete, world.now);
    assert_eq!(verdict, Ok(Verdict::Translated));
    assert_eq!(
        usize::from(u16::from_be_bytes([packet[2], packet[3]])),
        packet.len()
    );
    assert_sums(&packet, true);
    packet
}

fn on() -> Config {
    Config {
        ftp: true,
        ..config()
    }
}

fn port_text((address, port): (Ipv4Addr, u16)) -> String {
    let [a, b, c, d] = address.octets();
    format!("PORT {a},{b},{c},{d},{},{}\r\n", port >> 8, port & 255)
}

#[test]
fn rfc_959_section_4_1_2_port_names_the_external_endpoint_and_the_server_reaches_the_client() {
    let mut session = Session::open(on());
    let sent = session.client(1000, b"PORT 100,64,0,1,19,136\r\n");
    let external = session.data(5000).expect("a mapping");
    assert_eq!(text(&sent), port_text(external));
    assert_eq!(external.0, session.external.0, "RFC 4787 REQ-2: paired");
    // The server connects from port 20 to the client's port.
    let from = (address(WEB), 20);
    let mut syn = segment(between(from, external), SYN, (5, 0), &[], b"");
    assert_eq!(session.world.back(&mut syn), Ok(Verdict::Translated));
    assert_eq!(read(&syn).to, (address(ANN), 5000));
    let answer = segment(
        between((address(ANN), 5000), from),
        SYN | ACK,
        (7, 6),
        &[],
        b"",
    );
    let answer = send(&mut session.world, answer);
    assert_eq!(read(&answer).from, external);
    let counters = session.world.nat.counters();
    assert_eq!(
        (
            counters.ftp_rewritten,
            counters.ftp_left,
            counters.ftp_controls
        ),
        (1, 0, 1)
    );
}

#[test]
fn rfc_2428_section_2_eprt_names_the_external_endpoint() {
    let mut session = Session::open(on());
    let sent = session.client(1000, b"eprt !1!100.64.0.1!5000!\r\n");
    let (address, port) = session.data(5000).expect("a mapping");
    assert_eq!(text(&sent), format!("eprt !1!{address}!{port}!\r\n"));
}

#[test]
fn numbers_follow_the_change_in_both_directions() {
    let mut session = Session::open(on());
    let command = b"PORT 100,64,0,1,19,136\r\n";
    let sent = session.client(1000, command);
    let (old, new) = (command.len() as u32, text(&sent).len() as u32);
    assert_ne!(old, new, "the test's addresses differ in length");
    assert_eq!(number(&sent, 24), 1000);
    // Sent again before the acknowledgement, whole and in parts.
    let again = session.client(1000, command);
    assert_eq!(text(&again), text(&sent));
    let first = session.client(1000, &command[..11]);
    let second = session.client(1011, &command[11..]);
    assert_eq!([text(&first), text(&second)].concat(), text(&sent));
    assert_eq!(number(&second, 24), 1000 + text(&first).len() as u32);
    // The client's next text, and what the server acknowledges of it (RFC 2018: 5 is SACK, behind two of no operation).
    let list = session.client(1000 + old, b"LIST\r\n");
    assert_eq!(number(&list, 24), 1000 + new);
    let (left, right) = (1000 + new, 1006 + new);
    let options = [
        &[1, 1, 5, 10][..],
        &left.to_be_bytes(),
        &right.to_be_bytes(),
    ]
    .concat();
    let acked = session.server(1000, &options);
    assert_eq!(number(&acked, 28), 1000, "nothing acknowledged");
    assert_eq!(
        (number(&acked, 44), number(&acked, 48)),
        (1000 + old, 1006 + old)
    );
    assert_eq!(number(&session.server(1000 + new, &[]), 28), 1000 + old);
    assert_eq!(number(&session.server(right, &[]), 28), 1006 + old);
    // The next command adds to the difference.
    let sent = session.client(1006 + old, b"EPRT |1|100.64.0.1|5001|\r\n");
    assert_eq!(number(&sent, 24), right);
    assert_eq!(session.world.nat.counters().ftp_rewritten, 2);
    let end = right + text(&sent).len() as u32;
    assert_eq!(number(&session.server(end, &[]), 28), 1006 + old + 26);
}

#[test]
fn a_segment_of_several_lines_is_changed_where_it_names_an_address() {
    let mut session = Session::open(on());
    let sent = session.client(1000, b"TYPE I\r\nPORT 100,64,0,1,19,136\r\nLIST\r\n");
    let external = session.data(5000).expect("a mapping");
    assert_eq!(
        text(&sent),
        format!("TYPE I\r\n{}LIST\r\n", port_text(external))
    );
}

#[test]
fn what_is_split_or_not_understood_or_of_another_host_is_left_and_counted() {
    let long = [&b"X".repeat(540)[..], b"\r\nPORT 100,64,0,1,19,136\r\n"].concat();
    for (lefts, texts) in [
        (1, vec![&b"PORT 100,64,0,1"[..], b",19,136\r\n"]),
        (1, vec![b"PO", b"RT 100,64,0,1,19,136\r\n"]),
        (1, vec![b"PORT 100,64,0,2,19,136\r\n"]),
        (1, vec![b"PORT 100,64,0,1,0,80\r\n"]),
        (1, vec![b"PORT one\r\n"]),
        (1, vec![b"EPRT |2|2001:db8::1|5000|\r\n"]),
        (1, vec![&long]),
        (0, vec![b"PASV\r\nEPSV\r\n"]),
    ] {
        let mut session = Session::open(on());
        let mut at = 1000;
        for one in texts {
            let sent = session.client(at, one);
            assert_eq!((text(&sent).as_bytes(), number(&sent, 24)), (one, at));
            at += one.len() as u32;
        }
        assert_eq!(session.data(5000), None);
        let counters = session.world.nat.counters();
        assert_eq!((counters.ftp_left, counters.ftp_rewritten), (lefts, 0));
        // The next command is in its own segment, and understood again.
        session.client(at, b"PORT 100,64,0,1,19,137\r\n");
        assert!(session.data(5001).is_some());
    }
}

#[test]
fn a_segment_that_fills_a_gap_keeps_its_length() {
    let mut session = Session::open(on());
    let command = b"PORT 100,64,0,1,19,136\r\n";
    // The segment with the command is lost before the NAT; a later one passed with its number.
    let list = session.client(1000 + command.len() as u32, b"LIST\r\n");
    assert_eq!(number(&list, 24), 1000 + command.len() as u32);
    let late = session.client(1000, command);
    assert_eq!(text(&late).as_bytes(), command);
    assert_eq!(session.world.nat.counters().ftp_left, 1);
}

#[test]
fn a_damaged_segment_stays_damaged() {
    let mut session = Session::open(on());
    let mut packet = segment(
        ends(CLIENT, SERVER),
        ACK,
        (1000, 9000),
        &[],
        b"PORT 100,64,0,1,19,136\r\n",
    );
    packet[36] ^= 1;
    let header = Header::read(&packet).expect("an IP packet");
    let world = &mut session.world;
    assert!(
        !world
            .nat
            .outbound_ftp(world.ann, &header, &mut packet, world.now)
    );
    assert_eq!(session.data(5000), None);
    assert_eq!(session.world.nat.counters().ftp_left, 1);
}

#[test]
fn rfc_5382_req_6_it_is_off_unless_it_is_wanted() {
    assert!(!config().ftp);
    let mut session = Session::open(config());
    let command = b"PORT 100,64,0,1,19,136\r\n";
    let sent = session.client(1000, command);
    assert_eq!(text(&sent).as_bytes(), command);
    assert_eq!(session.world.nat.counters().ftp_controls, 0);
}

#[test]
fn connections_are_followed_up_to_a_limit_and_until_they_end() {
    let mut config = on();
    config.limits.ftp_controls_max = 2;
    let mut world = world(config);
    for port in 4000..4003 {
        let syn = segment(ends((ANN, port), SERVER), SYN, (1, 0), &[], b"");
        send(&mut world, syn);
    }
    let counters = world.nat.counters();
    assert_eq!((counters.ftp_controls, counters.ftp_untracked), (2, 1));
    // Nobody answered, so there is room after the time-out of a connection that opens.
    world.wait(250);
    assert_eq!(world.nat.counters().ftp_controls, 0);
    let mut session = Session::open(on());
    let fin = segment(ends(CLIENT, SERVER), ACK | FIN, (1000, 9000), &[], b"");
    send(&mut session.world, fin);
    session.world.wait(200);
    assert_eq!(session.world.nat.counters().ftp_controls, 1);
    session.world.wait(100);
    assert_eq!(session.world.nat.counters().ftp_controls, 0);
}

#[test]
fn one_subscriber_cannot_fill_the_table() {
    let mut world = world(on());
    for port in 4000..4040 {
        let syn = segment(ends((ANN, port), SERVER), SYN, (1, 0), &[], b"");
        send(&mut world, syn);
    }
    let counters = world.nat.counters();
    assert_eq!((counters.ftp_controls, counters.ftp_untracked), (32, 8));
}

#[test]
fn numbers_stay_right_after_a_reload_without_ftp() {
    let mut session = Session::open(on());
    let sent = session.client(1000, b"PORT 100,64,0,1,19,136\r\n");
    let (old, new) = (24, text(&sent).len() as u32);
    session
        .world
        .nat
        .reconfigure(config())
        .expect("good settings");
    let next = session.client(1000 + old, b"PORT 100,64,0,1,19,137\r\n");
    assert_eq!(number(&next, 24), 1000 + new);
    assert_eq!(text(&next), "PORT 100,64,0,1,19,137\r\n");
    assert_eq!(number(&session.server(1000 + new, &[]), 28), 1000 + old);
}

#[test]
fn address_dependent_filtering_admits_the_server_that_was_named() {
    let mut session = Session::open(Config {
        filtering: crate::Filtering::AddressDependent,
        ..on()
    });
    session.client(1000, b"PORT 100,64,0,1,19,136\r\n");
    let external = session.data(5000).expect("a mapping");
    let mut syn = segment(between((address(WEB), 20), external), SYN, (5, 0), &[], b"");
    assert_eq!(session.world.back(&mut syn), Ok(Verdict::Translated));
    let mut syn = segment(between((address(DNS), 20), external), SYN, (5, 0), &[], b"");
    assert_eq!(session.world.back(&mut syn), Err(Discard::Filtered));
}

#[test]
fn a_data_port_that_is_not_used_is_free_after_four_minutes() {
    let mut session = Session::open(on());
    session.client(1000, b"PORT 100,64,0,1,19,136\r\n");
    assert!(session.data(5000).is_some());
    session.world.wait(250);
    session.world.wait(10);
    assert_eq!(session.data(5000), None);
}

#[test]
fn ip_options_do_not_hide_a_command() {
    let mut session = Session::open(on());
    let plain = segment(
        ends(CLIENT, SERVER),
        ACK,
        (1000, 9000),
        &[],
        b"PORT 100,64,0,1,19,136\r\n",
    );
    let mut packet = ip(ends(CLIENT, SERVER), 6, 1, &plain[20..]);
    fix_header(&mut packet);
    let sent = send(&mut session.world, packet);
    let external = session.data(5000).expect("a mapping");
    assert!(sent.ends_with(port_text(external).as_bytes()));
}
