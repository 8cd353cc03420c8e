//! An edge over an access protocol other than L2TP: a subscriber connects, forwards packets in both directions
//! and ends.
#![forbid(unsafe_code)]

mod wire;

use core::net::Ipv4Addr;

use ::wire::checksum;
use aaa::Pools;
use aaa::accounting::TerminateCause;
use aaa::pools::{Range, Spec};
use base::{Duration, Instant, Redacted};
use edge::{
    Account, Admission, Config, Dial, Edge, End, Entry, Event, Inside, Outside, Path,
    SubscriberKey, Taken,
};
use ppp::{Authentication, Credentials, LinkEnd, Proof};
use wire::{Plug, Socket, Why, Wire};

const GATEWAY: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
/// Both ends use the same name for the wire.
const SOCKET: Socket = Socket(3);

#[derive(Default)]
struct Packets(Vec<Vec<u8>>);

impl Inside for Packets {
    fn packet(&mut self, packet: &[u8]) {
        self.0.push(packet.to_vec());
    }
}

/// Messages that carry packets, appended to an existing one, so each header starts at its own message.
#[derive(Default)]
struct Messages {
    sent: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Outside<Socket> for Messages {
    fn begin(&mut self, route: &Socket) -> Option<&mut Vec<u8>> {
        assert_eq!(*route, SOCKET);
        self.buffer = b"before".to_vec();
        Some(&mut self.buffer)
    }

    fn commit(&mut self, _: &Socket) {
        self.sent.push(self.buffer.split_off(6));
    }
}

/// Both ends, and the events at the network's end.
struct Stage {
    client: Edge<Wire>,
    edge: Edge<Wire>,
    now: Instant,
    up: Vec<SubscriberKey>,
    ended: Vec<End<Why>>,
    accounts: Vec<Account<Socket>>,
    frames: Vec<Vec<u8>>,
}

impl Stage {
    fn on_line(config: Config) -> (Self, Path<Plug>) {
        let pools = |ranges: Vec<Range>| {
            let name = "home".into();
            let spec = (!ranges.is_empty()).then(|| Spec {
                name,
                ranges,
                ..Spec::default()
            });
            Pools::new(spec.into_iter().collect(), vec![GATEWAY], 7).unwrap()
        };
        let range = Range::new(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 9)).unwrap();
        let client = Edge::new(
            Config::default(),
            Wire::new(SOCKET, false),
            pools(Vec::new()),
            [1; 32],
        );
        let edge = Edge::new(config, Wire::new(SOCKET, true), pools(vec![range]), [2; 32]);
        let path = edge.replica(1);
        let mut stage = Self {
            client,
            edge,
            now: Instant::ZERO,
            up: Vec::new(),
            ended: Vec::new(),
            accounts: Vec::new(),
            frames: Vec::new(),
        };
        let session = stage.client.endpoint_mut().open();
        let dial = Dial {
            credentials: Some(Credentials {
                name: b"alice"[..].into(),
                secret: Redacted::new(b"sesame"[..].into()),
            }),
            ipv4: true,
            ipv6: false,
            networks: Vec::new(),
        };
        stage.client.dial(session, dial, stage.now);
        stage.settle();
        assert_eq!(stage.up.len(), 1);
        (stage, path)
    }

    fn settle(&mut self) {
        let (now, mut none, mut bytes) = (self.now, Packets::default(), Vec::new());
        loop {
            let mut any = false;
            while self.client.poll_transmit(now, &mut bytes).is_some() {
                self.edge.receive(SOCKET, &bytes, now, &mut none);
                self.frames.push(core::mem::take(&mut bytes));
                any = true;
            }
            while self.edge.poll_transmit(now, &mut bytes).is_some() {
                self.client.receive(SOCKET, &bytes, now, &mut none);
                self.frames.push(core::mem::take(&mut bytes));
                any = true;
            }
            while let Some(question) = self.edge.poll_question() {
                let Proof::Chap {
                    identifier,
                    challenge,
                    response,
                } = &question.claim.proof
                else {
                    panic!("CHAP was asked for");
                };
                let right = ::wire::ppp::chap::md5_response(*identifier, b"sesame", challenge);
                assert_eq!(*response, right);
                let admission = Admission::default();
                assert!(self.edge.admit(question.subscriber, admission, b"", now));
                any = true;
            }
            if !any {
                break;
            }
        }
        while self.client.poll_event().is_some() {}
        while let Some(event) = self.edge.poll_event() {
            match event {
                Event::Up { subscriber } => self.up.push(subscriber),
                Event::Down { reason, .. } => self.ended.push(reason),
                _ => {}
            }
        }
        self.accounts
            .extend(core::iter::from_fn(|| self.edge.poll_account()));
    }

    fn address(&self) -> Ipv4Addr {
        let view = self.edge.subscriber(self.up[0]).unwrap();
        view.address.unwrap()
    }

    /// The message that carries a packet from the client.
    fn sent_up(&mut self, packet: &[u8]) -> Vec<u8> {
        let mut messages = Messages::default();
        self.client
            .forward(&mut from_tun(packet), self.now, &mut messages);
        assert_eq!(messages.sent.len(), 1);
        messages.sent.remove(0)
    }
}

fn config() -> Config {
    Config {
        terminate: true,
        accounting: true,
        address: GATEWAY,
        ppp: ppp::Config {
            authenticate: vec![Authentication::ChapMd5],
            ..ppp::Config::default()
        },
        ..Config::default()
    }
}

/// A UDP packet with this much data.
fn udp(from: Ipv4Addr, to: Ipv4Addr, length: usize) -> Vec<u8> {
    let total = (28 + length) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet[2..4].copy_from_slice(&total.to_be_bytes());
    packet.extend_from_slice(&from.octets());
    packet.extend_from_slice(&to.octets());
    let sum = !checksum::sum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.extend_from_slice(&[0x30, 0x39, 0, 53]);
    packet.extend_from_slice(&(total - 20).to_be_bytes());
    packet.resize(usize::from(total), 0);
    packet
}

/// A packet in the form that a TUN device returns.
fn from_tun(packet: &[u8]) -> Vec<u8> {
    [&[0; ::wire::virtio::LENGTH], packet].concat()
}

#[test]
fn a_subscriber_comes_on_line_and_passes_packets_both_ways() {
    let (mut stage, _) = Stage::on_line(config());
    let view = stage.edge.subscriber(stage.up[0]).unwrap();
    assert_eq!((view.name, view.place), (&b"alice"[..], SOCKET));
    assert_eq!(*view.numbers.unwrap().calling, *b"wire 3");
    // 1500, minus the header's 4 bytes and PPP's 2.
    assert_eq!(view.mtu, 1_494);
    let address = stage.address();
    let (now, mut inside) = (stage.now, Packets::default());

    let up = udp(address, FAR, 100);
    // Bytes appended by the wire, as Ethernet pads short frames, are not part of the packet.
    let message = [stage.sent_up(&up), vec![0; 18]].concat();
    assert_eq!(message[..6], [0, 0, 0, 130, 0, 0x21]);
    stage.edge.receive(SOCKET, &message, now, &mut inside);
    assert_eq!(inside.0, [up]);

    let down = udp(FAR, address, 700);
    let mut messages = Messages::default();
    stage.edge.forward(&mut from_tun(&down), now, &mut messages);
    let mut inside = Packets::default();
    stage
        .client
        .receive(SOCKET, &messages.sent[0], now, &mut inside);
    assert_eq!(inside.0, [down]);
    let traffic = stage.edge.subscriber(stage.up[0]).unwrap().traffic;
    assert_eq!((traffic.packets_in, traffic.packets_out), (1, 1));
}

#[test]
fn frames_of_the_link_have_their_length_and_no_address() {
    let (stage, _) = Stage::on_line(config());
    let frames: Vec<_> = stage.frames.iter().filter(|frame| frame[0] == 0).collect();
    assert!(frames.len() >= 8, "LCP, CHAP and IPCP");
    for frame in frames {
        let length = u16::from_be_bytes([frame[2], frame[3]]);
        assert_eq!(usize::from(length), frame.len() - 4);
        assert_ne!(frame[4..6], [0xff, 0x03]);
    }
}

#[test]
fn a_path_on_another_core_takes_packets_and_leaves_frames_of_the_link() {
    let (mut stage, mut path) = Stage::on_line(Config {
        paths: 2,
        ..config()
    });
    while let Some(change) = stage.edge.poll_change() {
        path.apply(change);
    }
    let (now, mut inside) = (stage.now, Packets::default());
    let address = stage.address();
    let up = udp(address, FAR, 10);
    let message = stage.sent_up(&up);
    assert_eq!(
        path.receive(&SOCKET, &message, now, &mut inside),
        Taken::Done
    );
    assert_eq!(inside.0, [up]);
    let echo = [0, 0, 0, 10, 0xc0, 0x21, 9, 1, 0, 8, 0, 0, 0, 0];
    assert_eq!(path.receive(&SOCKET, &echo, now, &mut inside), Taken::Left);
    let other = Socket(4);
    assert_eq!(
        path.receive(&other, &message, now, &mut inside),
        Taken::Left
    );
}

#[test]
fn a_wire_that_is_cut_ends_the_subscriber_with_the_wires_reason() {
    let (mut stage, _) = Stage::on_line(config());
    stage.client.endpoint_mut().cut(Why::Link);
    stage.settle();
    assert_eq!(stage.ended, [End::Session(Why::Cut)]);
    assert_eq!(stage.ended[0].to_string(), "the session: the wire was cut");
    let stop = stage.accounts.last().unwrap();
    assert_eq!(stop.entry, Entry::Stop(TerminateCause::LostCarrier));
    assert_eq!(stop.place, SOCKET);
    assert_eq!(stage.edge.counts().subscribers, 0);
    assert_eq!(stage.edge.counts().routes, 0);
}

#[test]
fn a_subscriber_that_is_dropped_ends_its_link_and_then_the_session() {
    let (mut stage, _) = Stage::on_line(config());
    let key = stage.up[0];
    assert!(
        stage
            .edge
            .drop_subscriber(key, End::Administrator, stage.now)
    );
    stage.settle();
    assert_eq!(stage.ended, [End::Administrator]);
    let ended = stage.client.ended(0).unwrap();
    assert_eq!(ended.reason, End::Link(LinkEnd::PeerTerminated));
    // The client's end waits one Restart time, unless the network's end has cut the wire by then.
    stage.now += Duration::from_secs(10);
    stage.client.handle_timeout(stage.now);
    stage.settle();
    assert!(stage.client.is_quiet() && stage.edge.is_quiet());
    assert_eq!(stage.edge.poll_timeout(), None);
}
