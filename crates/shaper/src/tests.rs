//! Tests engines between two hosts in network namespaces. The tests need root or user namespaces, and fail without
//! either.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::thread::JoinHandle;

use qos::fifo::Limit;
use qos::tree::{DrrSpec, PrioSpec, TbfSpec};
use qos::{codel, tbf};
use reactor::namespace::{Namespace, veth};
use reactor::port::offloads::OffloadsOff;
use reactor::port::{Io, PortOptions};
use reactor::timed::{Family, TimedBatch, TimedOptions, TimedSocket};

use super::*;

mod faulty;

const TO: &str = "192.0.2.2:5000";
const MILLISECOND: std::time::Duration = std::time::Duration::from_millis(1);
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

/// Hosts `a` (192.0.2.1) and `b` (192.0.2.2) with an engine between them, which runs until this is dropped.
struct Bench {
    a: Namespace,
    b: Namespace,
    middle: Namespace,
    control: Control,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<std::io::Result<Result<(), EngineError>>>>,
}

impl Bench {
    fn new(up: &Direction, down: &Direction) -> Self {
        Self::prepared(up, down, Io::Rings, |_| {})
    }

    /// The same, with an engine configured by `prepare`.
    fn prepared(up: &Direction, down: &Direction, io: Io, prepare: fn(&mut Engine)) -> Self {
        let new = || Namespace::new().expect("root, or leave to make namespaces");
        let (a, b, middle) = (new(), new(), new());
        for namespace in [&a, &b, &middle] {
            namespace
                .set("ipv6/conf/default/disable_ipv6", "1")
                .unwrap();
        }
        veth((&a, "eth0"), (&middle, "left")).unwrap();
        veth((&b, "eth0"), (&middle, "right")).unwrap();
        for (namespace, name) in [
            (&a, "eth0"),
            (&middle, "left"),
            (&b, "eth0"),
            (&middle, "right"),
        ] {
            namespace.netlink().unwrap().set_up(name, true).unwrap();
        }
        for (namespace, address) in [(&a, "192.0.2.1"), (&b, "192.0.2.2")] {
            let mut netlink = namespace.netlink().unwrap();
            let address: IpAddr = address.parse().unwrap();
            netlink.add_address("eth0", address, 24).unwrap();
            netlink
                .wait_until_running("eth0", Duration::from_secs(10))
                .unwrap();
        }
        let options = PortOptions {
            recv_buffer_bytes: Some(8 << 20),
            io,
            ..PortOptions::default()
        };
        let open = |name| middle.run(|| Port::open(name, &options)).unwrap().unwrap();
        let mut engine = Engine::new(open("left"), open("right"), up, down).unwrap();
        prepare(&mut engine);
        let control = engine.control();
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let thread = middle.spawn("engine", move || engine.run(&stops)).unwrap();
        Self {
            a,
            b,
            middle,
            control,
            stop,
            thread: Some(thread),
        }
    }

    fn udp(&self, address: &str) -> UdpSocket {
        let host = if address.starts_with("192.0.2.1:") {
            &self.a
        } else {
            &self.b
        };
        let socket = host.run(|| UdpSocket::bind(address).unwrap()).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// Waits for the engine's result.
    fn end(&mut self) -> Result<(), EngineError> {
        self.thread.take().unwrap().join().unwrap().unwrap()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A socket of host `b` that buffers datagrams until they are read.
fn collector(bench: &Bench) -> TimedSocket {
    let options = TimedOptions {
        recv_buffer_bytes: Some(8 << 20),
        ..TimedOptions::default()
    };
    let address = TO.parse().unwrap();
    bench
        .b
        .run(|| TimedSocket::udp(address, &options).unwrap())
        .unwrap()
}

/// Waits for `count` datagrams; returns each one's first bytes as a number, and its traffic class.
fn collect(socket: &mut TimedSocket, count: usize) -> Vec<(u32, u8)> {
    let mut all = Vec::new();
    let mut batch = TimedBatch::new(64, 2_000);
    while all.len() < count {
        socket.recv(&mut batch).unwrap();
        all.extend(batch.iter().map(|packet| {
            let number = u32::from_be_bytes(packet.bytes[..4].try_into().unwrap());
            (number, packet.traffic_class.unwrap())
        }));
        std::thread::sleep(MILLISECOND);
    }
    all
}

/// A numbered datagram.
fn numbered(n: u32) -> [u8; 1_000] {
    let mut payload = [0; 1_000];
    payload[..4].copy_from_slice(&n.to_be_bytes());
    payload
}

fn direction(spec: Spec) -> Direction {
    Direction {
        spec,
        overhead: Overhead::default(),
        delay: Duration::ZERO,
        packets_max: 4_000,
        seed: 1,
    }
}

fn plain() -> Direction {
    direction(Spec::Fifo(Limit::Packets(3_000)))
}

/// A rate with a burst of two packets, above a queue.
fn shaped(rate_bps: u64, child: Spec) -> Direction {
    let options = tbf::Options {
        rate_bps,
        burst: 3_000,
        peak: None,
    };
    direction(Spec::Tbf(TbfSpec {
        options,
        child: Box::new(child),
    }))
}

fn fifo(packets: u32) -> Spec {
    Spec::Fifo(Limit::Packets(packets))
}

#[test]
fn hosts_find_each_other_and_ping_with_the_delay_of_both_ways() {
    let delay = Duration::from_millis(10);
    let slow = Direction { delay, ..plain() };
    let bench = Bench::new(&slow, &plain());
    let options = TimedOptions::default();
    let socket = bench.a.run(|| TimedSocket::icmp_raw(Family::V4, &options));
    let mut socket = socket.unwrap().unwrap();
    let to: SocketAddr = "192.0.2.2:0".parse().unwrap();
    for sequence in 0..5 {
        let mut request = Vec::new();
        wire::icmp::Echo {
            kind: wire::icmp::Kind::Request,
            identifier: socket.identifier(),
            sequence,
            data: &[7; 56],
        }
        .emit(wire::icmp::Version::V4, &mut request);
        let sent = socket.send(&request, to, 0).unwrap();
        let mut batch = TimedBatch::new(1, 100);
        while socket.recv(&mut batch).unwrap() == 0 {
            std::thread::sleep(MILLISECOND);
        }
        let mut times = Vec::new();
        socket.send_times(&mut times).unwrap();
        let reply = batch.iter().next().unwrap();
        // The first datagram also waits for ARP, which is stamped later.
        let left = times.last().map_or(sent.called, |&(_, stamp)| stamp);
        assert!(reply.arrived.since(&left) >= delay);
    }
    let snapshot = bench.control.snapshot().unwrap();
    assert_eq!(
        (snapshot.up.stats.packets, snapshot.down.stats.packets),
        (5, 5)
    );
    assert!(snapshot.up.stats.past >= 1, "ARP");
}

#[test]
fn a_flood_gets_no_more_than_the_rate_and_every_packet_is_accounted_for() {
    let rate_bps = 2_000_000;
    let mut bench = Bench::new(&shaped(rate_bps, fifo(20)), &plain());
    let (sender, mut receiver) = (bench.udp("192.0.2.1:4000"), collector(&bench));
    sender.connect(TO).unwrap();
    let begin = clock::now();
    let sent = 1_000_u64;
    for n in 0..sent {
        sender.send(&numbered(n as u32)).unwrap();
        if n % 10 == 0 {
            std::thread::sleep(MILLISECOND);
        }
    }
    let snapshot = loop {
        let snapshot = bench.control.snapshot().unwrap();
        if snapshot.up.stats.packets == sent && snapshot.up.backlog.packets == 0 {
            break snapshot;
        }
        std::thread::sleep(MILLISECOND);
    };
    let took = snapshot.taken.since(begin);
    let (passed, stats) = (snapshot.up.statistics, snapshot.up.stats);
    assert_eq!(passed.sent_packets + stats.full + stats.no_room, sent);
    assert!(stats.full > 0 && passed.dropped == stats.full);
    assert_eq!(passed.sent_bytes, passed.sent_packets * 1_028);
    let most = u128::from(rate_bps) * u128::from(took.as_nanos()) / 8_000_000_000 + 3_000;
    assert!(
        u128::from(passed.sent_bytes) <= most,
        "{passed:?} in {took:?}"
    );
    let got = collect(&mut receiver, passed.sent_packets as usize);
    assert!(got.is_sorted());
    assert_eq!(snapshot.ports[1].refused, 0);
    bench.stop.store(true, Ordering::Relaxed);
    bench.end().unwrap();
    assert_eq!(bench.control.snapshot().unwrap_err(), ControlError::Ended);
}

#[test]
fn a_change_of_queues_under_load_loses_and_overtakes_nothing() {
    let bench = Bench::new(&shaped(4_000_000, fifo(2_000)), &plain());
    let (sender, mut receiver) = (bench.udp("192.0.2.1:4000"), collector(&bench));
    let specs = [
        shaped(
            4_000_000,
            Spec::Sfq(qos::sfq::Options {
                limit: 2_000,
                depth: 2_000,
                ..Default::default()
            }),
        )
        .spec,
        shaped(8_000_000, fifo(2_000)).spec,
        fifo(3_000),
    ];
    let mut specs = specs.iter();
    for n in 0..600 {
        sender.send_to(&numbered(n), TO).unwrap();
        if n % 10 == 0 {
            std::thread::sleep(MILLISECOND);
        }
        if n % 200 == 150 {
            let waiting = bench.control.snapshot().unwrap().up.backlog;
            assert!(waiting.packets > 0, "nothing waits at {n}");
            bench
                .control
                .replace(Way::Up, specs.next().unwrap())
                .unwrap();
        }
    }
    let got = collect(&mut receiver, 600);
    assert!(got.iter().map(|&(n, _)| n).eq(0..600));
    let empty = Spec::Prio(PrioSpec {
        bands: Vec::new(),
        classifier: None,
        priomap: qos::pfifo_fast::Options::default().bands,
    });
    let error = bench.control.replace(Way::Up, &empty).unwrap_err();
    assert!(matches!(error, ControlError::Spec(_)), "{error}");
}

#[test]
fn both_ways_change_at_once_or_neither_does() {
    let bench = Bench::new(&plain(), &plain());
    let kinds = || {
        let snapshot = bench.control.snapshot().unwrap();
        [snapshot.up, snapshot.down].map(|lane| lane.nodes[0].kind)
    };
    let framed = Overhead {
        per_packet: 100,
        ..Overhead::default()
    };
    let both = [Spec::Fifo(Limit::Bytes(90_000)), fifo(90)].map(|spec| (spec, framed));
    bench.control.replace_both(both).unwrap();
    assert_eq!(kinds(), ["bfifo", "pfifo"]);
    let (sender, receiver) = (bench.udp("192.0.2.1:4000"), bench.udp("192.0.2.2:5000"));
    sender.send_to(&[0; 72], TO).unwrap();
    assert_eq!(receiver.recv(&mut [0; 100]).unwrap(), 72);
    let snapshot = bench.control.snapshot().unwrap();
    assert_eq!(snapshot.up.statistics.sent_bytes, 28 + 72 + 100);

    let empty = Spec::Drr(DrrSpec {
        classes: Vec::new(),
        classifier: qos::tree::Classifier::Rules(Vec::new()),
    });
    let both = [plain().spec, empty].map(|spec| (spec, Overhead::default()));
    let error = bench.control.replace_both(both).unwrap_err();
    assert!(matches!(error, ControlError::Spec(_)), "{error}");
    assert_eq!(kinds(), ["bfifo", "pfifo"]);
}

#[test]
fn a_tcp_stream_that_was_left_to_be_cut_arrives_whole() {
    for io in [Io::Rings, Io::Calls] {
        let up = shaped(200_000_000, fifo(100));
        tcp_arrives_whole(&Bench::prepared(&up, &plain(), io, |_| {}));
    }
}

fn tcp_arrives_whole(bench: &Bench) {
    let listener = bench
        .b
        .run(|| TcpListener::bind("192.0.2.2:80").unwrap())
        .unwrap();
    let data: Vec<u8> = (0..2_000_000_u32)
        .map(|n| (n.wrapping_mul(31) >> 3) as u8)
        .collect();
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut stream = listener.accept().unwrap().0;
            let mut got = Vec::new();
            stream.read_to_end(&mut got).unwrap();
            got
        });
        let stream = bench.a.run(|| TcpStream::connect("192.0.2.2:80").unwrap());
        stream.unwrap().write_all(&data).unwrap();
        assert!(serving.join().unwrap() == data);
    });
    let snapshot = bench.control.snapshot().unwrap();
    assert!(snapshot.up.stats.cut > 0);
    assert_eq!(snapshot.up.stats.too_long, 0);
    // No packet on the line exceeds the link's MTU.
    let passed = snapshot.up.statistics;
    assert!(passed.sent_bytes <= passed.sent_packets * 1_500);
}

#[test]
fn what_waits_too_long_is_marked_where_its_sender_understands() {
    let codel = Spec::Codel(codel::Options {
        limit: 2_000,
        parameters: codel::Parameters {
            ecn: true,
            ..Default::default()
        },
    });
    let bench = Bench::new(&shaped(2_000_000, codel), &plain());
    let mut sender = bench
        .a
        .run(|| TimedSocket::udp("192.0.2.1:0".parse().unwrap(), &TimedOptions::default()).unwrap())
        .unwrap();
    let mut receiver = collector(&bench);
    for n in 0..200 {
        sender
            .send(&numbered(n), TO.parse().unwrap(), 0xba)
            .unwrap();
        std::thread::sleep(MILLISECOND);
    }
    let classes: Vec<u8> = collect(&mut receiver, 200)
        .iter()
        .map(|&(_, class)| class)
        .collect();
    let marked = classes.iter().filter(|&&class| class == 0xbb).count() as u64;
    let snapshot = bench.control.snapshot().unwrap();
    assert!(marked > 0);
    assert_eq!(
        (snapshot.up.stats.marked, snapshot.up.statistics.ecn_mark),
        (marked, marked)
    );
    assert!(classes.iter().all(|class| matches!(class, 0xba | 0xbb)));
}

#[test]
fn what_is_rewritten_on_its_way_in_is_queued_so_and_may_be_restored_on_its_way_out() {
    /// Adds 20 bytes to an IPv4 packet and updates its length field.
    fn longer(frame: &[u8]) -> Option<Vec<u8>> {
        let length = u16::from_be_bytes(frame.get(16..18)?.try_into().ok()?);
        let mut out = [frame, &[0; 20]].concat();
        out[16..18].copy_from_slice(&(length + 20).to_be_bytes());
        (frame[12..14] == [8, 0]).then_some(out)
    }
    fn shorter(frame: &[u8]) -> Option<Vec<u8>> {
        let mut out = frame.get(..frame.len().checked_sub(20)?)?.to_vec();
        let length = u16::from_be_bytes(out[16..18].try_into().ok()?);
        out[16..18].copy_from_slice(&(length - 20).to_be_bytes());
        Some(out)
    }
    let bench = Bench::prepared(&plain(), &plain(), Io::Rings, |engine| {
        engine.rewrite_entering(Way::Up, longer);
        engine.rewrite_leaving(Way::Up, shorter);
    });
    let off = |name| OffloadsOff::new(name).unwrap();
    // The interface computes a checksum that is left partial.
    let _off = bench.a.run(|| off("eth0")).unwrap();
    let (sender, mut receiver) = (bench.udp("192.0.2.1:4000"), collector(&bench));
    for n in 0..3 {
        sender.send_to(&numbered(n), TO).unwrap();
    }
    let numbers = collect(&mut receiver, 3);
    assert!(numbers.iter().map(|&(n, _)| n).eq(0..3));
    let passed = bench.control.snapshot().unwrap().up.statistics;
    assert_eq!((passed.sent_packets, passed.sent_bytes), (3, 3 * 1_048));
}

#[test]
fn neighbours_are_found_though_a_flood_fills_the_queue() {
    // Each packet takes nearly a second.
    let bench = Bench::new(&shaped(10_000, fifo(100)), &plain());
    let mut netlink = bench.b.netlink().unwrap();
    let other: IpAddr = "192.0.2.3".parse().unwrap();
    netlink.add_address("eth0", other, 24).unwrap();
    let sender = bench.udp("192.0.2.1:4000");
    let send_and_wait = |to: &str, count: u64| {
        let queued = || bench.control.snapshot().unwrap().up.stats;
        let before = queued();
        for _ in 0..count {
            sender.send_to(&numbered(0), to).unwrap();
        }
        while queued().packets < before.packets + count {
            std::thread::sleep(MILLISECOND);
        }
        queued().past - before.past
    };
    // Resolve the neighbour first, since the kernel queues few packets during resolution.
    assert!(send_and_wait(TO, 1) > 0);
    assert_eq!(send_and_wait(TO, 100), 0);
    // Traffic is sent there only after the kernel has received a reply from behind the queue.
    assert!(send_and_wait("192.0.2.3:5000", 1) > 0);
    assert!(bench.control.snapshot().unwrap().up.backlog.packets > 50);
}

#[test]
fn an_interface_that_goes_down_is_waited_for_and_one_that_vanishes_ends_it() {
    let mut bench = Bench::new(&plain(), &plain());
    let (sender, receiver) = (bench.udp("192.0.2.1:4000"), bench.udp("192.0.2.2:5000"));
    let mut buffer = [0; 100];
    sender.send_to(b"before", TO).unwrap();
    assert_eq!(receiver.recv(&mut buffer).unwrap(), 6);
    let mut netlink = bench.middle.netlink().unwrap();
    netlink.set_up("right", false).unwrap();
    sender.send_to(b"lost", TO).unwrap();
    while bench.control.snapshot().unwrap().up.stats.down == 0 {
        std::thread::sleep(MILLISECOND);
    }
    netlink.set_up("right", true).unwrap();
    netlink
        .wait_until_running("right", Duration::from_secs(10))
        .unwrap();
    let mut far = bench.b.netlink().unwrap();
    far.wait_until_running("eth0", Duration::from_secs(10))
        .unwrap();
    sender.send_to(b"again", TO).unwrap();
    assert_eq!(receiver.recv(&mut buffer).unwrap(), 5);
    netlink.delete("right").unwrap();
    let error = bench.end().unwrap_err();
    assert_eq!(error.to_string(), "right: the interface has vanished");
    assert!(bench.middle.as_fd().try_clone_to_owned().is_ok());
}
