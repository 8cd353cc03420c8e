//! Tests what peers receive from a daemon that ends: by SIGTERM, or because it cannot go on. The peers are sockets of
//! the test, so that the messages are judged as they are on the wire.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, getrlimit, prlimit};
use serde_json::json;
use wire::radius::{Packet, Writer};

use crate::support::{Daemon, Directory};

const SECRET: &[u8] = b"s3cret";
/// Acct-Status-Type and Acct-Terminate-Cause (RFC 2866, sections 5.1 and 5.10).
const STATUS: u8 = 40;
const CAUSE: u8 = 49;

/// A thread that ends with its owner.
struct Helper {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Helper {
    /// Calls `turn` until the end; it must not block for long.
    fn start(mut turn: impl FnMut() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                turn();
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn socket() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let patience = Some(Duration::from_millis(20));
    socket.set_read_timeout(patience).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

/// Acct-Status-Type and Acct-Terminate-Cause of each record, repetitions left out.
type Records = Arc<Mutex<Vec<(u32, Option<u32>)>>>;

/// A RADIUS server that acknowledges and keeps all records.
fn accounting() -> (Helper, SocketAddr, Records) {
    let (socket, address) = socket();
    let records = Records::default();
    let kept = Arc::clone(&records);
    let mut octets = [0; 4_096];
    let helper = Helper::start(move || {
        let Ok((length, from)) = socket.recv_from(&mut octets) else {
            return;
        };
        let request = Packet::parse(&octets[..length]).unwrap();
        assert_eq!(request.code(), 4, "an Accounting-Request");
        let number = |kind| request.find(kind).and_then(|found| found.integer());
        let record = (number(STATUS).unwrap(), number(CAUSE));
        let mut kept = kept.lock().unwrap();
        if !kept.contains(&record) {
            kept.push(record);
        }
        let mut reply = Vec::new();
        let writer = Writer::new(
            &mut reply,
            5,
            request.identifier(),
            &request.authenticator(),
        );
        writer.finish_signed(SECRET).unwrap();
        socket.send_to(&reply, from).unwrap();
    });
    (helper, address, records)
}

/// Message Type and Result Code of each control message of the LNS, repetitions left out.
type Messages = Arc<Mutex<Vec<(u16, Option<u16>)>>>;

/// Passes datagrams between a LAC and the LNS, and keeps the control messages of the LNS.
fn relay(lns: &str) -> (Helper, SocketAddr, Messages) {
    let ((near, address), (far, _)) = (socket(), socket());
    far.connect(lns).unwrap();
    for socket in [&near, &far] {
        socket
            .set_read_timeout(Some(Duration::from_millis(1)))
            .unwrap();
    }
    let messages = Messages::default();
    let kept = Arc::clone(&messages);
    let (mut lac, mut octets) = (None, [0; 4_096]);
    let helper = Helper::start(move || {
        if let Ok((length, from)) = near.recv_from(&mut octets) {
            lac = Some(from);
            let _ = far.send(&octets[..length]);
        }
        let (Ok(length), Some(lac)) = (far.recv(&mut octets), lac) else {
            return;
        };
        if let Some(message) = control(&octets[..length]) {
            let mut kept = kept.lock().unwrap();
            if !kept.contains(&message) {
                kept.push(message);
            }
        }
        let _ = near.send_to(&octets[..length], lac);
    });
    (helper, address, messages)
}

/// Message Type and Result Code of an L2TPv2 control message (RFC 2661, sections 3.1, 4.1 and 4.4).
fn control(octets: &[u8]) -> Option<(u16, Option<u16>)> {
    let word = |at: usize| Some(u16::from_be_bytes([*octets.get(at)?, *octets.get(at + 1)?]));
    if word(0)? & 0x8000 == 0 {
        return None;
    }
    let (mut at, mut kind, mut result) = (12, None, None);
    while let Some(length) = word(at)
        .map(|word| usize::from(word & 0x03ff))
        .filter(|len| *len > 0)
    {
        match word(at + 4)? {
            0 => kind = word(at + 6),
            1 => result = word(at + 6),
            _ => {}
        }
        at += length;
    }
    Some((kind?, result))
}

/// A BGP peer with an established session.
struct Peer(TcpStream);

impl Peer {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut peer = Self(stream);
        let open = wire::bgp::Open::new(64_501, 90, 0xc000_0202);
        let mut octets = Vec::new();
        open.emit(&mut octets).unwrap();
        peer.0.write_all(&octets).unwrap();
        assert_eq!(peer.next().unwrap().0, 1, "OPEN");
        let keepalive = [&[0xff; 16][..], &[0, 19, 4]].concat();
        peer.0.write_all(&keepalive).unwrap();
        assert_eq!(peer.next().unwrap().0, 4, "KEEPALIVE");
        peer
    }

    /// The type and body of the next message; `None` at the end of the stream.
    fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut header = [0; 19];
        self.0.read_exact(&mut header).ok()?;
        assert_eq!(header[..16], [0xff; 16], "the marker");
        let length = usize::from(u16::from_be_bytes([header[16], header[17]]));
        let mut body = vec![0; length - 19];
        self.0.read_exact(&mut body).unwrap();
        Some((header[18], body))
    }
}

/// Waits for a condition.
fn until(daemon: &Daemon, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "{}",
            daemon.log()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Brings up a subscriber and a BGP peer, ends the daemon, and judges what its peers received. Returns the status of
/// its exit, and its log.
fn goodbye(event: &str, end: impl FnOnce(&Daemon)) -> (Option<i32>, String) {
    let directory = Directory::new();
    let (_server, server, records) = accounting();
    let sections = format!(
        "[event]\n{event}[l2tp]\nshutdown_wait_s = 2\n[ppp]\naddress = \"10.64.255.1\"\nauthenticate = \"nobody\"\n\
         [[pool]]\nname = \"home\"\nranges = [\"10.64.0.0/24\"]\n\
         [[radius.server]]\naccounting = \"{server}\"\nsecret = \"s3cret\"\n\
         [bgp]\nasn = 64500\nrouter_id = \"192.0.2.1\"\nlisten = [\"127.0.0.1:0\"]\n\
         [[bgp.dynamic]]\nprefix = \"127.0.0.0/8\"\nremote_asn = 64501\n"
    );
    directory.private("lns.toml");
    let (mut lns, address) = Daemon::lns(&directory, &sections);
    directory.private("lac.toml");
    let client = "[client]\nname = \"one\"\nsecret = \"sesame\"\n";
    let lac = Daemon::lac(&directory, client);
    let (_relay, relayed, messages) = relay(&address);
    let session = json!({"session": true});
    let created = lac.client().create(&relayed.to_string(), 2, 1, session);
    assert_eq!(created[0]["up"], true, "{created:?}");
    // Accounting-On, then the Start of the session.
    let count = || records.lock().unwrap().len();
    until(&lns, || count() == 2);
    assert_eq!(*records.lock().unwrap(), [(7, None), (1, None)]);
    let bgp = lns.client().stats()["bgp"][0].as_str().unwrap().to_owned();
    let mut peer = Peer::connect(&bgp);
    until(&lns, || lns.log().contains("bgp session up"));

    end(&lns);
    let code = lns.wait().code();
    let message = core::iter::from_fn(|| peer.next()).last();
    // Cease, Administrative Shutdown (RFC 4486, section 3), without a text.
    assert_eq!(message, Some((3, vec![6, 2])), "{}", lns.log());
    // What was sent before the end may still be on its way through the test's threads.
    let stop = (4, Some(6));
    until(&lns, || messages.lock().unwrap().contains(&stop));
    let last = messages.lock().unwrap().last().copied();
    assert_eq!(
        last,
        Some(stop),
        "StopCCN: the requester is being shut down"
    );
    until(&lns, || count() == 4);
    // Stop, because the NAS is taken out of service (Admin Reboot), then Accounting-Off.
    assert_eq!(records.lock().unwrap()[2..], [(2, Some(7)), (8, None)]);
    (code, lns.log())
}

#[test]
fn a_daemon_that_is_terminated_says_goodbye_to_all_its_peers() {
    let (code, log) = goodbye("", |lns| lns.signal("TERM"));
    assert_eq!(code, Some(0), "{log}");
}

/// poll(2) fails with EINVAL if there are more descriptors than the process may open, which another process can cause.
#[test]
fn a_daemon_that_cannot_wait_for_descriptors_says_goodbye_to_all_its_peers() {
    let (code, log) = goodbye("poller = \"poll-kept\"\n", |lns| {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = Some(3);
        let pid = Pid::from_raw(lns.pid().cast_signed());
        prlimit(pid, Resource::Nofile, limit).unwrap();
        // The wait in progress ends with this.
        let _ = lns.client();
    });
    assert!(log.contains("the daemon cannot go on"), "{log}");
    assert_eq!(code, Some(1), "{log}");
}
