//! Tests that `headend lab use` names a resource under a load made for it: CPUs, a queue that drops, a listen queue, and the
//! descriptors of a process. Each load but that of the CPUs is in a namespace, or a process, of the test.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reactor::namespace::{Namespace, veth};
use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
use serde_json::Value;

const HEADEND: &str = env!("CARGO_BIN_EXE_headend");

/// A child that is killed when dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Calls `work` again and again, in a thread, while `look` runs.
fn during<T>(threads: usize, work: impl Fn() + Sync, look: impl FnOnce() -> T) -> T {
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    work();
                }
            });
        }
        let looked = look();
        is_done.store(true, Ordering::Relaxed);
        looked
    })
}

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(HEADEND);
    command
        .args(["lab", "use", "--interval", "0.7"])
        .args(words)
        .stdin(Stdio::null());
    command
}

/// The rows of `--json`, and whether the exit status says that something is saturated.
fn rows(output: &Output) -> (Vec<Value>, bool) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty(), "{errors}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap().clone();
    (rows, output.status.code() == Some(1))
}

/// The row whose unit contains `unit`.
fn row<'r>(rows: &'r [Value], unit: &str) -> &'r Value {
    let mut rows = rows.iter();
    let found = rows.find(|row| row["unit"].as_str().unwrap().contains(unit));
    found.expect(unit)
}

fn spin() {
    for n in 0..100_000_u32 {
        std::hint::black_box(n);
    }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from) + 4
}

#[test]
fn busy_cpus_are_named() {
    let output = during(threads(), spin, || command(&["--json"]).output().unwrap());
    let (rows, is_saturated) = rows(&output);
    assert!(is_saturated);
    for unit in ["busy, all CPUs", "busy, the busiest"] {
        assert_eq!(row(&rows, unit)["verdict"], "high", "{rows:#?}");
    }
    let ready = row(&rows, "threads ready beyond the CPUs");
    assert_eq!(ready["verdict"], "saturated", "{ready}");
    assert_eq!(ready["resource"], "cpu");
}

/// A class of 200 kbit/s with a queue of five packets, under a flood.
#[test]
fn a_class_that_drops_is_named() {
    let make = || Namespace::new().expect("root, or leave to make namespaces");
    let (near, far) = (make(), make());
    veth((&near, "wan0"), (&far, "far0")).unwrap();
    for (place, name, address) in [(&near, "wan0", "192.0.2.1"), (&far, "far0", "192.0.2.2")] {
        let mut netlink = place.netlink().unwrap();
        netlink.set_up(name, true).unwrap();
        let address = address.parse().unwrap();
        netlink.add_address(name, address, 24).unwrap();
    }
    for line in [
        "qdisc add dev wan0 root handle 1: htb default 0x10",
        "class add dev wan0 parent 1: classid 1:10 htb rate 200kbit",
        "qdisc add dev wan0 parent 1:10 handle 10: pfifo limit 5",
    ] {
        let mut tc = Command::new("tc");
        tc.args(line.split(' '));
        assert!(near.command(&mut tc).unwrap().status().unwrap().success());
    }
    let open = || UdpSocket::bind("192.0.2.1:0").unwrap();
    let socket = near.run(open).unwrap();
    let flood = || {
        // The sender gets an error from a full queue.
        let _ = socket.send_to(&[0; 1_000], "192.0.2.2:9");
        std::thread::sleep(Duration::from_millis(1));
    };
    let output = during(1, flood, || {
        let mut look = command(&["--json"]);
        near.command(&mut look).unwrap().output().unwrap()
    });
    let (rows, is_saturated) = rows(&output);
    assert!(is_saturated);
    for unit in ["packets that wait", "packets that the queue dropped"] {
        let row = row(&rows, unit);
        assert_eq!(row["verdict"], "saturated", "{row}");
        let item = row["item"].as_str().unwrap();
        assert!(item.starts_with("wan0 "), "{row}");
    }
}

/// A listener with room for one connection that accepts none.
#[test]
fn a_full_listen_queue_is_named() {
    let place = Namespace::new().expect("root, or leave to make namespaces");
    place.netlink().unwrap().set_up("lo", true).unwrap();
    let address: SocketAddr = "127.0.0.1:4000".parse().unwrap();
    let open = || {
        let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&listener, &address).unwrap();
        listen(&listener, 1).unwrap();
        listener
    };
    let _listener = place.run(open).unwrap();
    let connect = || {
        // A refused one is what the test wants; sockets belong to the namespace of their thread.
        let _ = place.run(|| TcpStream::connect_timeout(&address, Duration::from_millis(20)));
    };
    let output = during(4, connect, || {
        let mut look = command(&["--json"]);
        place.command(&mut look).unwrap().output().unwrap()
    });
    let (rows, is_saturated) = rows(&output);
    assert!(is_saturated);
    let row = row(&rows, "full listen queue");
    assert_eq!(
        (&row["verdict"], &row["resource"]),
        (&"saturated".into(), &"socket".into())
    );
}

#[test]
fn a_process_at_the_limit_of_its_descriptors_is_named() {
    let script = "ulimit -n 40; for n in $(seq 3 39); do eval \"exec $n< /dev/null\"; done; echo full; read -r line";
    let mut shell = Command::new("bash");
    shell
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut shell = Killed(shell.spawn().unwrap());
    let mut said = [0; 5];
    shell
        .0
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut said)
        .unwrap();
    let (rows, _) = rows(&command(&["--json"]).output().unwrap());
    let row = row(&rows, "the process's own limit");
    assert_eq!(row["item"], format!("bash ({})", shell.0.id()), "{row}");
    // One that it opened before it had the limit may count beyond it.
    assert!(
        row["value"].as_f64() >= Some(100.0) && row["verdict"] == "high",
        "{row}"
    );
    shell.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
}

/// On a terminal of 80 columns, no line is wider, and none breaks within a word.
#[test]
fn a_terminal_of_eighty_columns_has_whole_words() {
    let plain = during(threads(), spin, || {
        let line = format!("stty cols 80 rows 24; exec {HEADEND} lab use --interval 0.7");
        let mut script = Command::new("script");
        script
            .args(["-qec", &line, "/dev/null"])
            .stdin(Stdio::null());
        script.output().unwrap()
    });
    assert_eq!(plain.status.code(), Some(1));
    let text = String::from_utf8_lossy(&plain.stdout).replace('\r', "");
    let lines: Vec<&str> = text.lines().collect();
    for line in &lines {
        assert!(line.chars().count() <= 80, "{line:?}");
    }
    let at = lines
        .iter()
        .position(|line| line.starts_with("saturated cpu: "));
    let below = &lines[at.expect("a sentence")..];
    let end = below[1..].iter().position(|line| !line.starts_with("    "));
    let sentence: Vec<&str> = below[..=end.unwrap_or(below.len() - 1)]
        .iter()
        .flat_map(|line| line.split_whitespace())
        .collect();
    let sentence = sentence.join(" ");
    assert!(
        sentence
            .contains("at both readings; the threshold is 1 (Gregg, USE method: Linux checklist)")
            || sentence.contains("a thread waited for a CPU; the threshold is 10"),
        "{sentence}"
    );
}
