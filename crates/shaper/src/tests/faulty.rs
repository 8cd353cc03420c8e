//! An engine whose system calls fail at random, with each error that the manual pages name. It accounts for every
//! packet, and forwards again afterwards, or ends with the reason. It never panics and never hangs.

use std::sync::atomic::AtomicU64;

use reactor::Call;
use reactor::faults::{self, Plan};

use super::*;

/// Seeds of an ordinary run.
const SEEDS: u64 = 200;
/// Threads that run seeds, each with hosts of its own. Most of a seed is waiting.
const THREADS: u64 = 4;
/// Calls that fail alone in some seeds.
const ALONE: [Call; 5] = [
    Call::EpollWait,
    Call::EpollCtl,
    Call::Recvmmsg,
    Call::Sendmmsg,
    Call::Ioctl,
];

/// Errors of `recvmmsg` that are not the port's: no frame, a signal, a frame that cannot be described.
const EAGAIN: i32 = 11;
const EINTR: i32 = 4;
const EINVAL: i32 = 22;

/// Hosts `a` and `b`, and the place between them.
struct Hosts {
    from: UdpSocket,
    to: UdpSocket,
    middle: Namespace,
    /// They exist for as long as their namespaces.
    _hosts: [Namespace; 2],
}

impl Hosts {
    fn new() -> Self {
        let mut bench = Bench::new(&plain(), &plain());
        let (from, to) = (bench.udp("192.0.2.1:4000"), bench.udp(TO));
        from.connect(TO).unwrap();
        // Through the first engine, so that the hosts know each other's addresses from then on.
        from.send(&[1]).unwrap();
        to.recv(&mut [0; 9]).unwrap();
        bench.stop.store(true, Ordering::Relaxed);
        bench.end().unwrap();
        let new = || Namespace::new().unwrap();
        let hosts = [&mut bench.a, &mut bench.b].map(|host| core::mem::replace(host, new()));
        let middle = core::mem::replace(&mut bench.middle, new());
        to.set_read_timeout(Some(5 * MILLISECOND)).unwrap();
        Self {
            from,
            to,
            middle,
            _hosts: hosts,
        }
    }
}

fn plan(seed: u64) -> Plan {
    Plan {
        seed,
        one_in: [2, 5, 20][(seed % 3) as usize],
        burst_max: [1, 4, 12][(seed / 3 % 3) as usize],
        // Half of the seeds concentrate on one kind of call.
        calls: match seed % 2 {
            0 => Vec::new(),
            _ => vec![ALONE[(seed / 2) as usize % ALONE.len()]],
        },
        ..Plan::default()
    }
}

/// Runs one engine with faults. Returns how many, and whether it survived.
fn seed(hosts: &Hosts, seed: u64) -> (u64, bool) {
    let options = PortOptions::default();
    let open = |name| {
        hosts
            .middle
            .run(|| Port::open(name, &options))
            .unwrap()
            .unwrap()
    };
    let up = shaped(20_000_000, fifo(20));
    let mut engine = Engine::new(open("left"), open("right"), &up, &plain()).unwrap();
    let (control, stop) = (engine.control(), Arc::new(AtomicBool::new(false)));
    let stops = Arc::clone(&stop);
    faults::prepare();
    let heir = faults::heir();
    let thread = std::thread::spawn(move || {
        heir.take();
        let ended = engine.run(&stops);
        (ended, engine.snapshot())
    });
    control.snapshot().expect("it has started");
    faults::arm(plan(seed));
    for n in 0..60 {
        hosts.from.send(&numbered(n)).unwrap();
        if n % 8 == 0 {
            std::thread::sleep(MILLISECOND);
        }
    }
    let struck = faults::disarm();
    let begin = clock::now();
    let mut arrived = 0;
    while !thread.is_finished() && arrived < 3 {
        assert!(
            clock::now().since(begin) < Duration::from_secs(60),
            "it hangs: {struck:?}"
        );
        let _ = hosts.from.send(&[7]);
        let mut octets = [0; 2_000];
        while let Ok(length) = hosts.to.recv(&mut octets) {
            arrived += u64::from(length == 1);
        }
    }
    let survived = !thread.is_finished();
    assert_eq!(control.snapshot().is_ok(), survived, "{struck:?}");
    stop.store(true, Ordering::Relaxed);
    let (ended, last) = thread.join().unwrap();
    assert_eq!(ended.is_ok(), survived, "{ended:?}");
    let (lane, sums) = (&last.up, last.up.statistics);
    let dropped = lane.stats.full + lane.stats.overlimit + lane.stats.late;
    let counted =
        sums.sent_packets + dropped + lane.stats.no_room + u64::from(lane.backlog.packets);
    assert_eq!(lane.stats.packets, counted, "{last:?}");
    let near = last.faults[0] + last.faults[1];
    // Each other error of a read is counted, with the last one's reason.
    let received = struck.iter().filter(|(call, code, _)| {
        *call == Call::Recvmmsg && ![EAGAIN, EINTR, EINVAL].contains(code)
    });
    let received: u64 = received.map(|(.., count)| count).sum();
    assert_eq!(
        (near, last.fault.is_some()),
        (received, received > 0),
        "{struck:?}"
    );
    (struck.iter().map(|(.., count)| count).sum(), survived)
}

fn seeds(all: core::ops::Range<u64>) -> (u64, u64) {
    let next = AtomicU64::new(all.start);
    let (faults, ended) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let hosts = Hosts::new();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= all.end {
                        break;
                    }
                    eprintln!("seed {number}");
                    let (struck, survived) = seed(&hosts, number);
                    faults.fetch_add(struck, Ordering::Relaxed);
                    ended.fetch_add(u64::from(!survived), Ordering::Relaxed);
                }
            });
        }
    });
    (faults.into_inner(), ended.into_inner())
}

#[test]
fn an_engine_whose_calls_fail_forwards_again_or_ends_with_the_reason() {
    let (faults, ended) = seeds(0..SEEDS);
    println!("{faults} faults, {ended} ended");
    assert!(faults > SEEDS && ended < SEEDS / 10, "{faults} {ended}");
}

/// As above, with more seeds: `cargo test -p headend-shaper -- --ignored thousand`.
#[test]
#[ignore = "takes minutes"]
fn a_thousand_seeds() {
    let (faults, ended) = seeds(SEEDS..SEEDS + 1_000);
    println!("{faults} faults, {ended} ended");
    assert!(ended < 100, "{ended}");
}
