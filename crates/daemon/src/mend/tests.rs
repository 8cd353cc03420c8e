//! Tests a daemon whose system calls fail at random, with each error that the manual pages name.
//!
//! The daemon must survive and work again afterwards, or shut down in order. It must never panic
//! and never hang.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration as Span;

use reactor::faults::{self, Plan};
use reactor::namespace::Namespace;
use reactor::{Call, Signal};

use crate::{config, start};

/// Limit for anything a seed waits for.
const PATIENCE: Span = Span::from_secs(120);
/// Seeds of an ordinary run.
const SEEDS: u64 = 200;
/// Threads that run seeds, each in a namespace of its own. Most of a seed is waiting.
const THREADS: u64 = 24;

/// The requests to a daemon in a thread.
#[derive(Default)]
struct Orders {
    disarm: AtomicBool,
    end: AtomicBool,
    /// A plan for later, and whether that is now.
    arm: Mutex<Option<Plan>>,
    arm_now: AtomicBool,
}

/// How a faulty daemon ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    BySignal,
    /// It said goodbye, with this reason.
    Goodbye(String),
}

struct Place {
    directory: PathBuf,
    namespace: Namespace,
}

impl Place {
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.sock"))
    }

    fn lns(&self, seed: u64) -> PathBuf {
        let sockets = if seed.is_multiple_of(2) {
            "shared"
        } else {
            "per-tunnel"
        };
        let poller = ["epoll", "poll-kept"][usize::from(seed % 8 == 7)];
        // Three seeds of eight have packet threads, which need shared sockets. Half of the seeds keep accounts.
        let shards = [3, 1, 1, 1, 2, 1, 3, 1][(seed % 8) as usize];
        let store = match seed / 2 % 2 {
            0 => String::new(),
            _ => format!("accounting_store = {:?}\n", self.directory.join("accounts")),
        };
        let text = format!(
            "[event]\npoller = {poller:?}\nshards = {shards}\n[control]\nsocket = {:?}\n[lns]\nlisten = [\"127.0.0.1:1701\"]\nsockets = {sockets:?}\n\
             [l2tp]\nshutdown_wait_s = 0.2\n\
             [ppp]\naddress = \"10.64.255.1\"\nauthenticate = \"nobody\"\n\
             [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n[tun]\nname = \"inside\"\n\
             [radius]\ndisconnect = \"127.0.0.1:3799\"\n{store}\
             [[radius.server]]\naccounting = \"127.0.0.1:1813\"\nsecret = \"s3cret\"\n\
             [[radius.client]]\naddress = \"127.0.0.1\"\nsecret = \"s3cret\"\n\
             [bgp]\nasn = 64500\nrouter_id = \"192.0.2.1\"\nlisten = [\"127.0.0.1:1790\"]\n\
             install = true\nshutdown_wait_s = 0.2\n[[bgp.dynamic]]\nprefix = \"127.0.0.0/8\"\nremote_asn = 64501\n",
            self.socket("lns")
        );
        self.file("lns.toml", &text)
    }

    fn lac(&self) -> PathBuf {
        let text = format!(
            "[control]\nsocket = {:?}\n[lac]\nlisten = [\"127.0.0.1:0\"]\n[l2tp]\nshutdown_wait_s = 0.2\n\
             retransmit_first_s = 0.5\n[client]\nname = \"one\"\nsecret = \"sesame\"\n",
            self.socket("lac")
        );
        self.file("lac.toml", &text)
    }

    /// Runs a daemon on a thread in the namespace.
    fn spawn(
        &self,
        config: PathBuf,
        plan: Option<Plan>,
        orders: Arc<Orders>,
    ) -> std::thread::JoinHandle<std::io::Result<(Ended, faults::Struck)>> {
        let work = move || run(&config, plan, &orders);
        self.namespace.spawn("daemon", work).unwrap()
    }
}

fn run(config: &Path, plan: Option<Plan>, orders: &Orders) -> (Ended, faults::Struck) {
    let settings = config::load(config).unwrap_or_else(|faults| panic!("{faults}"));
    // Packet threads and the thread that writes accounting records obey this thread's plans.
    faults::prepare();
    let mut daemon = start::start(&settings, config).unwrap();
    if let Some(plan) = plan {
        faults::arm(plan);
    }
    let mut struck = faults::Struck::new();
    while !daemon.is_over() {
        daemon.turn();
        if orders.arm_now.swap(false, Ordering::AcqRel)
            && let Some(plan) = orders.arm.lock().unwrap().take()
        {
            faults::arm(plan);
        }
        if orders.disarm.swap(false, Ordering::AcqRel) {
            struck = faults::disarm();
        }
        if orders.end.load(Ordering::Acquire) && daemon.core.stop_at.is_none() {
            daemon.signal(Signal::Terminate);
        }
    }
    struck.extend(faults::disarm());
    let reason = daemon.failure.as_ref().map(ToString::to_string);
    let by_signal = daemon.finish();
    assert_eq!(by_signal, reason.is_none());
    (reason.map_or(Ended::BySignal, Ended::Goodbye), struck)
}

/// Sends a request to a control socket. Returns the first line of the reply, if there is one in
/// time: a connection may break.
fn ask(socket: &Path, request: &str, patience: Span) -> Option<String> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream.set_read_timeout(Some(patience)).ok()?;
    stream.write_all(format!("{request}\n").as_bytes()).ok()?;
    let mut reply = vec![0; 65_536];
    let length = stream.read(&mut reply).ok()?;
    let text = String::from_utf8_lossy(&reply[..length]).into_owned();
    text.lines().next().map(str::to_owned)
}

/// Calls that fail alone in some seeds.
const ALONE: [Call; 18] = [
    Call::EpollCreate,
    Call::EpollCtl,
    Call::EpollWait,
    Call::Recvmmsg,
    Call::Sendmmsg,
    Call::Recvfrom,
    Call::Sendto,
    Call::Open,
    Call::Ioctl,
    Call::Read,
    Call::Write,
    Call::Accept,
    Call::Socket,
    Call::Bind,
    Call::Pread,
    Call::Pwrite,
    Call::Ftruncate,
    Call::Fdatasync,
];

/// How long to wait for a reply that may not come.
const SHORT: Span = Span::from_millis(30);
/// How long to wait for one that has to come, at the second try at the latest.
const LONG: Span = Span::from_millis(500);

const STATS: &str = r#"{"v":1,"id":1,"do":"server.stats"}"#;
const CREATE: &str = r#"{"v":1,"id":1,"do":"tunnel.create","peer":"127.0.0.1:1701","version":2,"count":1,"session":true}"#;

/// Lets each source of the daemon do something.
fn trouble(place: &Place) {
    let _ = ask(&place.socket("lac"), CREATE, SHORT);
    for _ in 0..3 {
        let _ = ask(&place.socket("lns"), STATS, SHORT);
    }
    place
        .namespace
        .run(|| {
            let bgp = TcpStream::connect("127.0.0.1:1790");
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            for port in [1701, 3799] {
                let _ = udp.send_to(b"no message of a protocol", ("127.0.0.1", port));
            }
            let out = UdpSocket::bind("0.0.0.0:0").unwrap();
            let _ = out.send_to(b"to a subscriber", "10.64.0.1:9");
            drop(bgp);
        })
        .unwrap();
}

/// Waits until `is_so` or until the daemon has ended; returns whether it is so.
fn until<T>(
    thread: &std::thread::JoinHandle<T>,
    what: &str,
    mut is_so: impl FnMut() -> bool,
) -> bool {
    let started = std::time::Instant::now();
    loop {
        if is_so() {
            return true;
        }
        if thread.is_finished() {
            return false;
        }
        assert!(started.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Span::from_millis(2));
    }
}

/// One daemon with faults, and a peer without. Returns how it ended, and its faults.
fn seed(place: &Place, seed: u64) -> (Ended, faults::Struck) {
    let plan = Plan {
        seed,
        one_in: [3, 10, 40][(seed % 3) as usize],
        burst_max: [1, 4, 12][(seed / 3 % 3) as usize],
        part_in: [0, 3][(seed / 2 % 2) as usize],
        // A third of the seeds concentrate on one kind of call.
        calls: match seed % 9 {
            0..3 => vec![ALONE[(seed / 9) as usize % ALONE.len()]],
            _ => Vec::new(),
        },
    };
    let (lns_orders, lac_orders) = (Arc::<Orders>::default(), Arc::<Orders>::default());
    let lns = place.spawn(place.lns(seed), Some(plan), Arc::clone(&lns_orders));
    let lac = place.spawn(place.lac(), None, Arc::clone(&lac_orders));
    until(&lac, "the LAC listens", || {
        ask(&place.socket("lac"), STATS, LONG).is_some()
    });
    for _ in 0..3 {
        trouble(place);
    }
    lns_orders.disarm.store(true, Ordering::Release);
    let socket = place.socket("lns");
    let recovered = until(&lns, "the LNS works again", || {
        let stats = ask(&socket, STATS, LONG).unwrap_or_default();
        let is_down = stats.contains(r#""state":"lost""#) || stats.contains(r#""state":"resting""#);
        stats.contains(r#""sources":"#) && !is_down
    });
    if recovered {
        until(&lns, "a new tunnel comes up", || {
            ask(&place.socket("lac"), CREATE, LONG + LONG)
                .is_some_and(|reply| reply.contains(r#""up":true"#))
        });
    }
    for (orders, name) in [(&lns_orders, "lns"), (&lac_orders, "lac")] {
        orders.end.store(true, Ordering::Release);
        let _ = ask(&place.socket(name), STATS, SHORT);
    }
    lac.join().unwrap().unwrap();
    lns.join().unwrap().unwrap()
}

#[test]
fn a_daemon_that_cannot_wait_tells_its_peers_and_exits() {
    let Ok(namespace) = Namespace::new() else {
        return;
    };
    let directory = std::env::temp_dir().join(format!("headend-waits-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    let place = Place {
        directory,
        namespace,
    };
    let plan = Plan {
        seed: 1,
        one_in: 1,
        burst_max: 1,
        calls: vec![Call::EpollWait],
        ..Plan::default()
    };
    let (lns_orders, lac_orders) = (Arc::<Orders>::default(), Arc::<Orders>::default());
    *lns_orders.arm.lock().unwrap() = Some(plan);
    let lns = place.spawn(place.lns(0), None, Arc::clone(&lns_orders));
    let lac = place.spawn(place.lac(), None, Arc::clone(&lac_orders));
    let at_lac = place.socket("lac");
    until(&lac, "a tunnel is up", || {
        ask(&at_lac, CREATE, LONG + LONG).is_some_and(|reply| reply.contains(r#""up":true"#))
    });
    lns_orders.arm_now.store(true, Ordering::Release);
    let _ = ask(&place.socket("lns"), STATS, SHORT);
    let (ended, _) = lns.join().unwrap().unwrap();
    assert!(matches!(ended, Ended::Goodbye(_)), "{ended:?}");
    // StopCCN, result 6: the requester is being shut down (RFC 2661, section 4.4.2).
    const ENDED: &str = r#"{"v":1,"id":1,"do":"show.ended.tunnels"}"#;
    until(&lac, "the peer knows", || {
        ask(&at_lac, ENDED, LONG)
            .is_some_and(|reply| reply.contains("closed by the peer, result 6"))
    });
    lac_orders.end.store(true, Ordering::Release);
    let _ = ask(&at_lac, STATS, SHORT);
    lac.join().unwrap().unwrap();
    fs::remove_dir_all(&place.directory).unwrap();
}

fn seeds(all: core::ops::Range<u64>) -> Option<(u64, u64, usize)> {
    // Without the privilege this test cannot check anything.
    Namespace::new().ok()?;
    let next = AtomicU64::new(all.start);
    let (survived, goodbyes) = (AtomicU64::new(0), AtomicU64::new(0));
    let struck = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (next, survived, goodbyes, struck) = (&next, &survived, &goodbyes, &struck);
            let end = all.end;
            scope.spawn(move || {
                let name = format!("headend-faults-{}-{thread}", std::process::id());
                let directory = std::env::temp_dir().join(name);
                fs::create_dir_all(&directory).unwrap();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= end {
                        break;
                    }
                    let place = Place {
                        directory: directory.clone(),
                        namespace: Namespace::new().unwrap(),
                    };
                    let started = std::time::Instant::now();
                    eprintln!("seed {number}");
                    let (ended, faults) = seed(&place, number);
                    eprintln!(
                        "seed {number}: {ended:?} after {:?}, {} kinds",
                        started.elapsed(),
                        faults.len()
                    );
                    match ended {
                        Ended::BySignal => survived.fetch_add(1, Ordering::Relaxed),
                        Ended::Goodbye(_) => goodbyes.fetch_add(1, Ordering::Relaxed),
                    };
                    let mut struck = struck.lock().unwrap();
                    struck.extend(
                        faults
                            .into_iter()
                            .map(|(call, code, _)| (call.name(), code)),
                    );
                }
                fs::remove_dir_all(&directory).unwrap();
            });
        }
    });
    let kinds = struck.into_inner().unwrap().len();
    Some((survived.into_inner(), goodbyes.into_inner(), kinds))
}

#[test]
fn a_daemon_whose_calls_fail_survives_or_says_goodbye() {
    let Some((survived, goodbyes, kinds)) = seeds(0..SEEDS) else {
        return;
    };
    println!("{survived} survived, {goodbyes} said goodbye, {kinds} kinds of faults");
    assert_eq!(survived + goodbyes, SEEDS);
    // Only a wait that fails many times in a row ends it.
    assert!(survived > SEEDS * 8 / 10, "{survived}");
    assert!(kinds > 100, "{kinds}");
}

/// As above, with more seeds: `cargo test -p headend-daemon -- --ignored thousand`.
#[test]
#[ignore = "takes minutes"]
fn a_thousand_seeds() {
    let Some((survived, goodbyes, kinds)) = seeds(SEEDS..SEEDS + 1_000) else {
        return;
    };
    println!("{survived} survived, {goodbyes} said goodbye, {kinds} kinds of faults");
    assert_eq!(survived + goodbyes, 1_000);
}
