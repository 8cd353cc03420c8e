//! Tests rates in `headend qos show`, `graph --live` and its page, for a running shaper and a real interface.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Bench, HEADEND, until};

/// Sends a few hundred datagrams a second between two sockets, until it is dropped.
struct Stream {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stream {
    fn new((sender, receiver): (UdpSocket, UdpSocket)) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let short = Some(Duration::from_millis(50));
        receiver.set_read_timeout(short).unwrap();
        let thread = std::thread::spawn(move || {
            let mut buffer = [0; 2_000];
            while !stops.load(Ordering::Relaxed) {
                // Datagrams are lost while no shaper runs.
                let _ = sender
                    .send(&[0; 972])
                    .and_then(|_| receiver.recv(&mut buffer));
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// A child process, killed when this is dropped.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a live page and returns its address.
fn serve(bench: &Bench, words: &[&str]) -> (Serving, SocketAddr) {
    let words = [
        words,
        &["--live", "--interval", "0.2", "--listen", "127.0.0.1:0"],
    ]
    .concat();
    let mut child = bench
        .home
        .command(&words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let serving = Serving(child);
    out.read_line(&mut line).unwrap();
    let address = line
        .trim()
        .strip_prefix("http://")
        .and_then(|it| it.strip_suffix('/'));
    (serving, address.expect(&line).parse().unwrap())
}

/// An HTTP response: status line and body.
fn ask(address: SocketAddr, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
    let status = head.lines().next().unwrap().to_owned();
    (status, body.to_owned())
}

fn get(address: SocketAddr, target: &str) -> (String, String) {
    ask(
        address,
        &format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n"),
    )
}

#[test]
fn every_command_of_the_page_about_a_running_one_works() {
    let bench = Bench::new("page-running");
    let _shaper = bench.start();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/qos.md");
    let page = fs::read_to_string(page).unwrap();
    let commands = page
        .lines()
        .filter_map(|line| line.strip_prefix("headend qos "))
        .map(|command| command.split(' ').collect::<Vec<&str>>())
        .filter(|words| crate::files::is_of_a_running_one(words) && words[0] != "run");
    // The commands wait for their second reading in parallel.
    let done = std::thread::scope(|scope| {
        let threads: Vec<_> = commands
            .map(|words| scope.spawn(|| try_out(&bench, words)))
            .collect();
        let count = threads.len();
        for thread in threads {
            thread.join().unwrap();
        }
        count
    });
    assert!(done >= 8, "{done} commands");
}

/// Runs a command of the page with the arguments that it needs here.
fn try_out(bench: &Bench, mut words: Vec<&str>) {
    // Without --count, these commands do not end.
    if words.contains(&"-w") || words.contains(&"--live") {
        words.extend(["--count", "1"]);
    }
    let output = if words.contains(&"lan0") {
        bench.command(&words).output().unwrap()
    } else {
        let at = words.iter().position(|word| *word == "--socket");
        match at {
            Some(at) => words[at + 1] = "control",
            None => words.extend(["--socket", "control"]),
        }
        bench.home.run(&words)
    };
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{words:?}: {errors}");
    match words.iter().position(|word| *word == "-o") {
        Some(at) => assert!(fs::metadata(bench.home.path(words[at + 1])).unwrap().len() > 1_000),
        None => assert!(!output.stdout.is_empty(), "{words:?}"),
    }
}

#[test]
fn rates_of_a_running_shaper_are_shown_as_text_table_json_and_page() {
    let bench = Bench::new("rates");
    let _shaper = bench.start();
    let _stream = Stream::new(bench.sockets());
    let shown = |words: &[&str]| {
        let output = bench.ask(words);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    let documents = shown(&["show", "--json", "-w", "0.2", "--count", "3"]);
    let documents: Vec<Value> = documents
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(documents.len(), 3);
    for document in &documents {
        let rates = &document["up"]["rates"];
        let (bps, pps) = (
            rates["bps"].as_f64().unwrap(),
            rates["pps"].as_f64().unwrap(),
        );
        assert!(
            pps > 0.0 && (bps / pps / 8_000.0 - 1.0).abs() < 0.01,
            "{rates}"
        );
        assert!(document["interval_s"].as_f64().unwrap() > 0.0);
    }
    // The second reading includes the traffic between the two.
    let rise = |field: &str| {
        let at = |n: usize| documents[n][field].as_u64().unwrap();
        at(2) - at(1)
    };
    let packets = |n: usize| documents[n]["up"]["packets"].as_u64().unwrap();
    let pps = (packets(2) - packets(1)) as f64 * 1e9 / rise("taken_ns") as f64;
    let told = documents[2]["up"]["rates"]["pps"].as_f64().unwrap();
    assert!((pps - told).abs() <= 0.1, "{pps} {told}");

    let text = shown(&["show", "--interval", "0.2"]);
    assert!(
        text.contains("\nup: lan0 -> wan0, rate 80Mbit, now "),
        "{text}"
    );
    let blocks = shown(&["show", "-w", "0.2", "--count", "2"]);
    assert_eq!(blocks.matches("lan0 <-> wan0, pid ").count(), 2);
    assert!(!blocks.contains('\u{1b}'), "no terminal");
    let tree = shown(&["graph", "--live", "--interval", "0.2", "--count", "2"]);
    assert_eq!(
        tree.matches("Queues between lan0 and wan0: rates over ")
            .count(),
        2
    );
    assert!(tree.contains("now ") && !tree.contains('\u{1b}'), "{tree}");
    shown(&["graph", "--interval", "0.2", "-o", "page.html"]);
    let page = fs::read_to_string(bench.home.path("page.html")).unwrap();
    let label = page
        .split("id=\"r1\"")
        .nth(1)
        .unwrap()
        .split(['>', '<'])
        .nth(1)
        .unwrap();
    assert!(label.ends_with("bit/s") && label != "0 bit/s", "{label}");
    assert!(!page.contains("rates.json"), "a file asks nobody");
}

/// Asserts that requests for anything but the pages are refused.
fn assert_other_requests_are_refused(address: SocketAddr) {
    let (status, body) = ask(
        address,
        &format!("POST / HTTP/1.1\r\nHost: {address}\r\nContent-Length: 2\r\n\r\nhi"),
    );
    assert_eq!(
        (status.as_str(), body.as_str()),
        ("HTTP/1.1 405 Method Not Allowed", "only GET is served")
    );
    assert!(
        ask(address, "GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
            .0
            .contains(" 421 ")
    );
    assert!(get(address, "/../etc/passwd").0.contains(" 404 "));
    assert!(
        ask(
            address,
            &format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(9_000))
        )
        .0
        .contains(" 431 ")
    );
}

/// Asserts that one client more than allowed is refused, and served once the silent ones have gone.
fn assert_a_crowd_is_refused(address: SocketAddr) {
    let silent: Vec<TcpStream> = (0..16)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let crowded = until("a crowd", || {
        let mut stream = TcpStream::connect(address).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let mut said = String::new();
        let _ = stream.read_to_string(&mut said);
        said.contains(" 503 ").then_some(said)
    });
    assert!(crowded.ends_with("too many ask at once"), "{crowded}");
    drop(silent);
    until("room", || {
        let mut stream = TcpStream::connect(address).ok()?;
        write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").ok()?;
        let mut said = String::new();
        stream.read_to_string(&mut said).ok()?;
        said.contains(" 200 ").then_some(())
    });
}

#[test]
fn the_page_is_served_to_this_machine_with_bounds() {
    let bench = Bench::new("http");
    let shaper = bench.start();
    let _stream = Stream::new(bench.sockets());
    let (_serving, address) = serve(&bench, &["graph", "--socket", "control"]);
    let (status, page) = get(address, "/");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(page.contains("<svg ") && page.contains("fetch('rates.json'"));
    let rates = || -> Value { serde_json::from_str(&get(address, "/rates.json").1).unwrap() };
    let shape = rates()["shape"].clone();
    assert!(page.contains(&format!("shape={shape}")), "{shape}");
    until("a rate", || {
        let rates = rates();
        let node = rates["nodes"]
            .as_array()?
            .iter()
            .find(|node| node["handle"] == "20:")?;
        (node["rates"]["bps"].as_u64()? > 0 && node["label"] != "0 bit/s").then_some(())
    });
    assert_other_requests_are_refused(address);
    assert_a_crowd_is_refused(address);

    // Changed boxes give another shape. The page reports a source that has ended, and draws it again when it is back.
    bench.home.write("policy.toml", "[link]\nup = \"9mbit\"\n");
    assert!(bench.ask(&["reload"]).status.success());
    until("another shape", || {
        (rates()["shape"] != shape).then_some(())
    });
    drop(shaper);
    until("the end", || {
        rates()["error"]
            .as_str()?
            .contains("nothing runs at control")
            .then_some(())
    });
    let _again = bench.start();
    until("the next", || rates()["nodes"].is_array().then_some(()));
}

#[test]
fn an_interfaces_real_queues_are_drawn_with_their_rates() {
    let bench = Bench::new("real");
    let mut tc = Command::new("sh");
    tc.args([
        "-c",
        "tc qdisc add dev eth0 root handle 1: htb default 20 && \
         tc class add dev eth0 parent 1: classid 1:1 htb rate 90mbit quantum 1514 && \
         tc class add dev eth0 parent 1:1 classid 1:20 htb rate 90mbit quantum 1514 && \
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:20",
    ]);
    assert!(
        bench
            .a
            .command(&mut tc)
            .unwrap()
            .status()
            .unwrap()
            .success()
    );
    let _shaper = bench.start();
    let _stream = Stream::new(bench.sockets());
    let draw = |words: &[&str]| {
        let mut command = Command::new(HEADEND);
        command.args(["qos", "graph", "eth0"]).args(words);
        let output = bench.a.command(&mut command).unwrap().output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    let tree = draw(&["--live", "--interval", "0.3", "--count", "2"]);
    assert_eq!(
        tree.matches("u32 800::800 pref 1 ip  -> 1:20\n").count(),
        2,
        "{tree}"
    );
    assert_eq!(
        tree.matches("now ").count(),
        2 * 4,
        "interface, discipline and classes: {tree}"
    );
    assert!(!tree.contains("now 0 bit/s"), "{tree}");
    let json: Value =
        serde_json::from_str(&draw(&["--interval", "0.3", "--format", "json"])).unwrap();
    let nodes = json["tree"]["nodes"].as_array().unwrap();
    let class = nodes.iter().find(|node| node["handle"] == "1:20").unwrap();
    assert!(class["rates"]["bps"].as_u64().unwrap() > 0, "{class}");
    assert!(draw(&["--interval", "0.3", "--format", "dot"]).contains("\\lnow "));
}
