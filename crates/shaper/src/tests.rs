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
use wire::segment::{Kind, Segments};

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
            keep_large: true,
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
        // Two packets take more than a millisecond.
        let up = shaped(23_000_000, fifo(100));
        let up = tcp_arrives_whole(&Bench::prepared(&up, &plain(), io, |_| {}));
        assert!(up.stats.cut > 0 && up.stats.kept == 0);
        // No packet on the line exceeds the link's MTU.
        assert!(up.statistics.sent_bytes <= up.statistics.sent_packets * 1_500);
        // Without a rate, nothing is cut.
        let up = tcp_arrives_whole(&Bench::prepared(&plain(), &plain(), io, |_| {}));
        assert!(up.stats.kept > 0 && up.stats.cut == 0);
        assert!(up.statistics.sent_bytes <= up.stats.packets * 1_500);
    }
}

fn tcp_arrives_whole(bench: &Bench) -> LaneSnapshot {
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
    assert_eq!(snapshot.up.stats.too_long, 0);
    snapshot.up
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

/// Ten datagrams of 1,000 bytes that host `a` leaves to be cut, and one more.
fn send_ten(bench: &Bench) {
    let options = reactor::UdpOptions::default();
    let from = "192.0.2.1:4000".parse().unwrap();
    let socket = bench.a.run(|| reactor::UdpSocket::bind(from, &options));
    let mut socket = socket.unwrap().unwrap();
    let mut batch = reactor::SendBatch::new(16);
    for n in 1..=10 {
        batch.push(&numbered(n), TO.parse().unwrap(), None);
    }
    assert_eq!(socket.send(&mut batch).sent, 10);
}

#[test]
fn packets_stay_together_where_the_rate_allows_it_and_count_as_each_by_itself() {
    let framed = |spec| Direction {
        overhead: Overhead {
            per_packet: 100,
            ..Overhead::default()
        },
        ..direction(spec)
    };
    // The bytes on the line of four packets take a millisecond at 37 Mbit/s.
    let class = |rate_bps| qos::htb::ClassOptions {
        minor: 1,
        parent: None,
        rate_bps,
        ceil_bps: rate_bps,
        burst: 20_000,
        cburst: 20_000,
        priority: 0,
        quantum: None,
    };
    let htb = |rate_bps| {
        Spec::Htb(qos::tree::HtbSpec {
            mtu: 1_514,
            classes: vec![class(rate_bps)],
            leaves: vec![(1, fifo(100))],
            classifier: None,
            default: Some(1),
            direct_limit: 0,
        })
    };
    // Of UDP, a port that sends by a ring keeps nothing.
    let cases = [
        (Io::Calls, fifo(100), [1, 0], 1),
        (Io::Calls, htb(37_000_000), [1, 0], 3),
        (Io::Calls, htb(10_000_000), [0, 1], 10),
        (Io::Rings, fifo(100), [0, 1], 10),
    ];
    for (io, spec, kept_and_cut, pieces) in cases {
        {
            let bench = Bench::prepared(&framed(spec), &plain(), io, |_| {});
            let mut receiver = collector(&bench);
            // The neighbours find each other.
            bench
                .udp("192.0.2.1:4001")
                .send_to(&numbered(0), TO)
                .unwrap();
            collect(&mut receiver, 1);
            let before = bench.control.snapshot().unwrap().up;
            send_ten(&bench);
            let got = collect(&mut receiver, 10);
            assert!(got.iter().map(|&(n, _)| n).eq(1..=10), "{got:?}");
            let after = bench.control.snapshot().unwrap().up;
            let (stats, sent) = (after.stats, after.statistics);
            assert_eq!([stats.kept, stats.cut], kept_and_cut);
            assert_eq!(stats.packets - before.stats.packets, 10);
            assert_eq!(sent.sent_bytes - before.statistics.sent_bytes, 10 * 1_128);
            assert_eq!(sent.sent_packets - before.statistics.sent_packets, pieces);
        }
    }
}

#[test]
fn packets_that_the_other_link_does_not_take_are_refused_and_counted() {
    let bench = Bench::new(&plain(), &plain());
    let mut receiver = collector(&bench);
    bench
        .udp("192.0.2.1:4001")
        .send_to(&numbered(0), TO)
        .unwrap();
    collect(&mut receiver, 1);
    let mut command = std::process::Command::new("ip");
    command.args(["link", "set", "right", "mtu", "1000"]);
    let status = bench.middle.command(&mut command).unwrap().status();
    assert!(status.unwrap().success());
    // The port looks at its MTU again.
    bench.control.snapshot().unwrap();
    send_ten(&bench);
    while bench.control.snapshot().unwrap().ports[1].refused < 10 {
        std::thread::sleep(MILLISECOND);
    }
    assert_eq!(bench.control.snapshot().unwrap().up.stats.cut, 1);
}

/// A frame of TCP or UDP to be cut, with the flags CWR, ACK, PSH and FIN, and numbers that wrap around.
fn whole(kind: Kind, is_v6: bool, payload: usize) -> Vec<u8> {
    let mut transport = vec![0x0f, 0xa0, 0x13, 0x88];
    match kind {
        Kind::Tcp => {
            transport.extend([
                0xff, 0xff, 0xff, 0, 0, 0, 0, 9, 0x60, 0x99, 0x10, 0, 0, 0, 0, 0,
            ]);
            transport.extend([1, 1, 1, 0]);
        }
        Kind::Udp => {
            transport.extend((payload as u16 + 8).to_be_bytes());
            transport.extend([0xab, 0xcd]);
        }
    }
    transport.extend((0..payload).map(|n| (n * 7) as u8));
    let protocol = if kind == Kind::Tcp { 6 } else { 17 };
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    if is_v6 {
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
        frame.extend((transport.len() as u16).to_be_bytes());
        frame.extend([protocol, 64]);
        frame.extend([0x20; 16]);
        frame.extend([0x30; 16]);
    } else {
        frame.extend([8, 0, 0x45, 0xb9]);
        frame.extend((transport.len() as u16 + 20).to_be_bytes());
        frame.extend([0xff, 0xfe, 0x40, 0, 64, protocol, 0, 0]);
        frame.extend([192, 0, 2, 1, 192, 0, 2, 2]);
    }
    frame.extend(transport);
    frame
}

#[test]
fn the_kernel_cuts_a_piece_into_the_same_bytes_as_we_do() {
    let bench = Bench::new(&plain(), &plain());
    let off = |name| OffloadsOff::new(name).unwrap();
    let _off = bench.a.run(|| off("eth0")).unwrap();
    // The second port at the engine's interface receives the same frames.
    let open = |namespace: &Namespace, name, io| {
        let options = PortOptions {
            recv_buffer_bytes: Some(8 << 20),
            io,
            ..PortOptions::default()
        };
        namespace
            .run(|| Port::open(name, &options))
            .unwrap()
            .unwrap()
    };
    let mut sender = open(&bench.a, "eth0", Io::Calls);
    let mut receiver = open(&bench.middle, "left", Io::Rings);
    let mut frames = Frames::new(300, 1_500);
    for (kind, is_v6) in [
        (Kind::Tcp, false),
        (Kind::Tcp, true),
        (Kind::Udp, false),
        (Kind::Udp, true),
    ] {
        let whole = whole(kind, is_v6, 5_432);
        let segments = Segments::new(&whole, kind, 700).unwrap();
        // Several pieces of three segments, the last one of two.
        let handles: Vec<u32> = (0..segments.count())
            .step_by(3)
            .map(|first| piece(&mut frames, &segments, (kind, 700), first))
            .collect();
        assert_eq!(sender.send(&frames, &handles).unwrap(), 3);
        assert_eq!(sender.stats().refused, 0, "{kind:?}, IPv6: {is_v6}");
        for n in 0..segments.count() {
            let mut expected = vec![0; segments.length(n)];
            segments.write(n, &mut expected).unwrap();
            let handle = next_of(&mut receiver, &mut frames);
            let got = frames.get(handle);
            assert!(got == expected, "{kind:?} {n}:\n{got:x?}\n{expected:x?}");
            frames.give_back(handle);
        }
        for handle in handles {
            frames.give_back(handle);
        }
    }
}

/// A slot with three segments from `first` on.
fn piece(
    frames: &mut Frames,
    segments: &Segments<'_>,
    (kind, size): (Kind, u16),
    first: usize,
) -> u32 {
    let handle = frames.take_uncut(|room| {
        let piece = segments.write_piece(first, 3, room)?;
        let uncut = reactor::port::Uncut {
            cut: match kind {
                Kind::Tcp => reactor::port::Cut::Tcp(size),
                Kind::Udp => reactor::port::Cut::Udp(size),
            },
            is_v6: piece.is_v6,
            has_cwr: piece.has_cwr,
            headers: piece.headers as u16,
            checksum: reactor::port::OpenChecksum {
                start: piece.transport as u16,
                offset: piece.checksum as u16,
            },
        };
        Some((piece.length, uncut))
    });
    handle.unwrap()
}

/// The next frame from the test's sender.
fn next_of(port: &mut Port, frames: &mut Frames) -> u32 {
    let mut received = Vec::new();
    loop {
        // One at a time, so that none is left over.
        if port.receive(frames, &mut received).unwrap() == 0 {
            std::thread::sleep(MILLISECOND);
        }
        WAITING.with_borrow_mut(|waiting| {
            waiting.extend(received.drain(..).map(|received| match received {
                Received::Frame(handle) => handle,
                Received::Large(_) => panic!("not cut"),
            }));
        });
        while let Some(handle) = WAITING.with_borrow_mut(std::collections::VecDeque::pop_front) {
            if frames.get(handle)[..12] == [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1] {
                return handle;
            }
            frames.give_back(handle);
        }
    }
}

std::thread_local! {
    /// Frames that were received with an earlier one.
    static WAITING: std::cell::RefCell<std::collections::VecDeque<u32>> =
        const { std::cell::RefCell::new(std::collections::VecDeque::new()) };
}
