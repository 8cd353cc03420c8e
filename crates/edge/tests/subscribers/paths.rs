//! Packets on other cores: a path that receives all changes forwards what the edge would, and leaves the rest.

use core::net::Ipv4Addr;

use base::Duration;
use edge::{Config, Discard, End, Entry, Path, PathCounts, Taken};
use l2tp::Call;
use wire::checksum;

use crate::packets::udp;
use crate::stage::{Datagrams, LAC, LNS, Packets, Stage, from_tun, lns_config, route};

const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

/// An edge with a second path, and both ends of it.
struct Cores {
    stage: Stage,
    path: Path,
    /// Changes handed to it.
    told: u64,
    inside: Packets,
    outside: Datagrams,
}

impl Cores {
    fn new(config: Config) -> Self {
        let stage = Stage::new(Config { paths: 2, ..config });
        Self {
            path: stage.lns.replica(1),
            told: 0,
            stage,
            inside: Packets::default(),
            outside: Datagrams::default(),
        }
    }

    fn on_line(config: Config, call: Call) -> (Self, Ipv4Addr) {
        let mut cores = Self::new(config);
        cores.stage.dial_call("alice", "sesame", call);
        cores.tell();
        let key = cores.stage.up[0];
        let address = cores.stage.lns.subscriber(key).unwrap().address.unwrap();
        (cores, address)
    }

    fn tell(&mut self) {
        while let Some(change) = self.stage.lns.poll_change() {
            self.path.apply(change);
            self.told += 1;
        }
        self.stage.lns.applied(self.told, self.stage.now);
    }

    /// A client's packet that arrives on the second path.
    fn up(&mut self, packet: &[u8]) -> Vec<Taken> {
        let datagrams = self.stage.datagrams_up(packet);
        let now = self.stage.now;
        datagrams
            .iter()
            .map(|datagram| {
                self.path
                    .receive(&route(LAC), datagram, now, &mut self.inside)
            })
            .collect()
    }

    /// A packet from the inside that leaves on the second path.
    fn down(&mut self, packet: &[u8]) -> Taken {
        let now = self.stage.now;
        self.path
            .forward(&mut from_tun(packet), now, &mut self.outside)
    }

    fn counts(&self) -> PathCounts {
        self.stage.lns.path_counts().nth(1).unwrap()
    }
}

#[test]
fn packets_pass_as_by_the_edge_itself_and_are_counted_with_the_others() {
    let (mut cores, address) = Cores::on_line(lns_config(), Call::default());
    let packet = udp(address, FAR, 100, true);
    assert_eq!(cores.up(&packet), [Taken::Done]);
    assert_eq!(cores.inside.0.concat(), packet);
    cores.stage.up_stream(&packet);
    assert_eq!(cores.stage.inside.0, cores.inside.0);

    let packet = udp(FAR, address, 700, true);
    assert_eq!(cores.down(&packet), Taken::Done);
    let mut by_the_edge = Datagrams::default();
    let now = cores.stage.now;
    cores
        .stage
        .lns
        .forward(&mut from_tun(&packet), now, &mut by_the_edge);
    assert_eq!(cores.outside.sent, by_the_edge.sent);

    let key = cores.stage.up[0];
    let traffic = cores.stage.lns.subscriber(key).unwrap().traffic;
    assert_eq!((traffic.packets_in, traffic.octets_in), (2, 256));
    assert_eq!((traffic.packets_out, traffic.octets_out), (2, 1_456));
    assert_eq!(
        (cores.counts().packets_in, cores.counts().packets_out),
        (1, 1)
    );
}

#[test]
fn what_is_no_packet_of_an_open_session_is_left_as_it_is() {
    let (mut cores, address) = Cores::on_line(lns_config(), Call::default());
    let now = cores.stage.now;
    let mut left = |bytes: &[u8], from| {
        let taken = cores
            .path
            .receive(&route(from), bytes, now, &mut cores.inside);
        assert_eq!(taken, Taken::Left, "{bytes:x?}");
    };
    let packet = udp(address, FAR, 10, true);
    let good = cores.stage.datagrams_up(&packet).remove(0);
    left(&[0xc8, 2, 0, 12, 0, 1, 0, 0, 0, 0, 0, 0], LAC);
    left(&[], LAC);
    left(&[0; 3], LAC);
    // A link's frame, another session, another peer.
    let mut link = good.clone();
    link[8..10].copy_from_slice(&[0xc0, 0x21]);
    left(&link, LAC);
    let mut other = good.clone();
    other[5] ^= 1;
    left(&other, LAC);
    left(&good, LNS);
    assert_eq!(cores.counts().left, 6);
    assert!(cores.inside.0.is_empty());
}

#[test]
fn a_packet_from_a_foreign_address_is_dropped_there_too_and_counted_for_all() {
    let (mut cores, address) = Cores::on_line(lns_config(), Call::default());
    let good = udp(address, FAR, 10, true);
    let mut datagram = cores.stage.datagrams_up(&good).remove(0);
    let other = udp(Ipv4Addr::from_bits(address.to_bits() ^ 1), FAR, 10, true);
    let start = datagram.len() - good.len();
    datagram[start..].copy_from_slice(&other);
    let now = cores.stage.now;
    let taken = cores
        .path
        .receive(&route(LAC), &datagram, now, &mut cores.inside);
    assert_eq!(taken, Taken::Done);
    let why = Discard::Forward(forward::Discard::Spoofed);
    assert_eq!(cores.stage.lns.discarded(why), 1);
    let key = cores.stage.up[0];
    assert_eq!(cores.stage.lns.subscriber(key).unwrap().traffic.dropped, 1);
}

#[test]
fn what_a_path_passes_before_it_hears_of_the_end_is_in_the_last_account() {
    let (mut cores, address) = Cores::on_line(lns_config(), Call::default());
    let datagram = cores
        .stage
        .datagrams_up(&udp(address, FAR, 100, true))
        .remove(0);
    let (tunnel, now) = (cores.stage.tunnel, cores.stage.now);
    cores.stage.lac.endpoint_mut().close_tunnel(tunnel, now);
    cores.stage.settle();
    assert_eq!(cores.stage.ended.len(), 1);
    let taken = cores
        .path
        .receive(&route(LAC), &datagram, now, &mut cores.inside);
    assert_eq!(taken, Taken::Done);
    // Only the start entry so far.
    assert_eq!(cores.stage.accounts.len(), 1);
    assert!(cores.stage.lns.is_parting() && cores.stage.lns.ended(0).is_none());
    let mut changes = 0;
    while let Some(change) = cores.stage.lns.poll_change() {
        cores.path.apply(change);
        changes += 1;
        cores.stage.lns.applied(changes + cores.told - 1, now);
    }
    cores.stage.lns.applied(changes + cores.told, now);
    cores.stage.settle();
    let stop = cores.stage.accounts.last().unwrap();
    assert!(matches!(stop.entry, Entry::Stop(_)));
    assert_eq!((stop.traffic.packets_in, stop.traffic.octets_in), (1, 128));
    assert_eq!(cores.stage.lns.ended(0).unwrap().traffic, stop.traffic);
}

#[test]
fn numbered_frames_are_the_edges_alone() {
    let call = Call {
        sequencing: true,
        ..Call::default()
    };
    let (mut cores, address) = Cores::on_line(lns_config(), call);
    let packet = udp(address, FAR, 100, true);
    assert_eq!(cores.up(&packet), [Taken::Left]);

    // Its checksum is open, as a TUN device returns it, and completed before it leaves.
    let down = udp(FAR, address, 100, true);
    let mut open = from_tun(&down);
    (open[0], open[6], open[8]) = (1, 20, 6);
    let pseudo = [&down[12..20], &[0, 17], &down[24..26]].concat();
    let start = wire::virtio::LENGTH + 26;
    open[start..start + 2].copy_from_slice(&checksum::sum(&pseudo).to_be_bytes());
    let mut expected = open.clone();
    let now = cores.stage.now;
    let taken = cores.path.forward(&mut open, now, &mut cores.outside);
    assert_eq!(taken, Taken::Left);
    assert!(cores.outside.sent.is_empty());
    let mut sent = [Datagrams::default(), Datagrams::default()];
    for (octets, sent) in [&mut open, &mut expected].into_iter().zip(&mut sent) {
        cores.stage.lns.forward(octets, now, sent);
    }
    let [mut left, mut straight] = sent.map(|mut sent| sent.sent.remove(0));
    // Ns (RFC 2661, section 3.1) follows flags, tunnel and session: one frame, and the next.
    assert_eq!((left[0] & 0x08, left[6..8].len()), (0x08, 2));
    let ns = |datagram: &[u8]| u16::from_be_bytes([datagram[6], datagram[7]]);
    assert_eq!(ns(&left) + 1, ns(&straight));
    left[6..8].fill(0);
    straight[6..8].fill(0);
    assert_eq!(left, straight);
}

#[test]
fn who_is_ended_passes_nothing_any_more_and_leaves_nothing() {
    let (mut cores, address) = Cores::on_line(lns_config(), Call::default());
    assert_eq!((cores.path.len(), cores.path.routes()), (1, 1));
    let datagram = cores
        .stage
        .datagrams_up(&udp(address, FAR, 10, true))
        .remove(0);
    let (key, now) = (cores.stage.up[0], cores.stage.now);
    cores
        .stage
        .lns
        .drop_subscriber(key, End::Administrator, now);
    cores.tell();
    let taken = cores
        .path
        .receive(&route(LAC), &datagram, now, &mut cores.inside);
    assert_eq!(taken, Taken::Left);
    cores.stage.settle();
    cores.tell();
    assert!(cores.path.is_empty() && cores.path.routes() == 0);
    // The address now belongs to no subscriber, and the sender receives an error.
    assert_eq!(cores.down(&udp(FAR, address, 10, true)), Taken::Done);
    assert!(cores.path.poll_inside().is_some());
}

#[test]
fn packets_by_another_path_keep_a_subscriber_and_its_tunnel() {
    let config = Config {
        idle_timeout: Duration::from_secs(60),
        ..lns_config()
    };
    let (mut cores, address) = Cores::on_line(config, Call::default());
    for _ in 0..10 {
        cores.stage.pass(Duration::from_secs(30));
        assert_eq!(cores.up(&udp(address, FAR, 10, true)), [Taken::Done]);
        let heard = cores.path.poll_heard().unwrap();
        assert_eq!(cores.path.poll_heard(), None);
        cores.stage.lns.heard(heard, cores.stage.now);
    }
    assert!(cores.stage.ended.is_empty());
    cores.stage.pass(Duration::from_secs(130));
    assert_eq!(cores.stage.ended[0].1, End::IdleTimeout);
}

#[test]
fn filters_and_taps_hold_on_every_path() {
    let names = filter::Names::well_known();
    let text = "filter web\nin\ndeny udp to any port 53\naccept ip\n";
    let (set, _) = filter::FilterSet::parse(text, &names).unwrap();
    let mut cores = Cores::new(Config {
        filter: Some("web".into()),
        ..lns_config()
    });
    cores.stage.lns.filters_mut().replace(set);
    cores.stage.dial("alice", "sesame");
    cores.tell();
    let key = cores.stage.up[0];
    let address = cores.stage.lns.subscriber(key).unwrap().address.unwrap();
    let tap = cores.stage.lns.tap([key], None).unwrap();
    cores.tell();
    let packet = udp(address, FAR, 10, true);
    assert_eq!(cores.up(&packet), [Taken::Done]);
    cores.stage.up_stream(&packet);
    assert!(cores.inside.0.is_empty());
    assert_eq!(cores.stage.lns.discarded(Discard::Filtered), 2);
    let filters = cores.stage.lns.filters();
    let filter = filters
        .set()
        .get(filters.set().find("web").unwrap())
        .unwrap();
    assert_eq!(filters.hits(filter, 0), 2);

    let mut octets = Vec::new();
    let copy = cores.path.poll_tapped(&mut octets).unwrap();
    assert_eq!((copy.tap, copy.subscriber, copy.is_to), (tap, key, false));
    assert!(octets.ends_with(&packet));
    assert!(cores.stage.lns.poll_tapped(&mut Vec::new()).is_some());
    cores.stage.lns.take_tapped(copy, &octets);
    let mut again = Vec::new();
    assert_eq!(cores.stage.lns.poll_tapped(&mut again), Some(copy));
    assert_eq!(again, octets);
    cores.stage.lns.untap(tap);
    cores.tell();
    assert_eq!(cores.up(&packet), [Taken::Done]);
    assert_eq!(cores.path.poll_tapped(&mut octets), None);
}

#[test]
fn a_client_numbers_while_its_network_does() {
    let mut stage = Stage::new(lns_config());
    stage.dial("alice", "sesame");
    let (_, client) = stage.lac.next_subscriber(0).unwrap();
    let address = client.address.unwrap();
    let session = stage.lns.next_subscriber(0).unwrap().1.session;
    let header = stage.lns.endpoint_mut().data_header(session).unwrap();
    let plain = header.as_bytes();
    let frame = |ns: Option<u8>, frame: &[u8]| match ns {
        Some(ns) => [&[plain[0] | 0x08], &plain[1..6], &[0, ns, 0, 0], frame].concat(),
        None => [plain, frame].concat(),
    };
    let echo = [0xff, 3, 0xc0, 0x21, 9, 77, 0, 8, 0, 0, 0, 0];
    let packet = [&[0xff, 3, 0, 0x21], &udp(FAR, address, 10, true)[..]].concat();
    // RFC 2661, section 5.4: with or without numbers, whatever the frame.
    for (ns, content) in [
        (Some(0), &echo[..]),
        (None, &echo),
        (Some(1), &packet),
        (None, &packet),
    ] {
        let now = stage.now;
        let datagram = frame(ns, content);
        stage
            .lac
            .receive(route(LNS), &datagram, now, &mut stage.client_inside);
        let sent = stage.datagrams_up(&udp(address, FAR, 10, true)).remove(0);
        assert_eq!(sent[0] & 0x08 != 0, ns.is_some());
    }
}
