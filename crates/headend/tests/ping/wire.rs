//! Tests on a wire between two namespaces: the packets on it, the sources of errors, and a wire that is cut.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reactor::namespace::{Namespace, veth};
use reactor::port::{Frames, Port, PortOptions, Received};

use crate::support::{Directory, HEADEND, json, privileged, read_lines};

/// Two hosts joined by a wire. The far host forwards packets, but knows no other network.
struct Wire {
    near: Namespace,
    far: Namespace,
}

impl Wire {
    fn new() -> Wire {
        let (near, far) = (Namespace::new().unwrap(), Namespace::new().unwrap());
        veth((&near, "v0"), (&far, "v1")).unwrap();
        for (host, name, number) in [(&near, "v0", 1), (&far, "v1", 2)] {
            let mut netlink = host.netlink().unwrap();
            for (address, prefix) in [("10.77.0.", 24), ("fd77::", 64), ("fe80::", 64)] {
                let address: IpAddr = format!("{address}{number}").parse().unwrap();
                netlink.add_address(name, address, prefix).unwrap();
            }
            netlink.set_up(name, true).unwrap();
        }
        let limit = base::Duration::from_secs(10);
        near.netlink()
            .unwrap()
            .wait_until_running("v0", limit)
            .unwrap();
        let default: IpAddr = "0.0.0.0".parse().unwrap();
        let via = Some("10.77.0.2".parse().unwrap());
        near.netlink()
            .unwrap()
            .add_route(default, 0, via, "v0")
            .unwrap();
        far.forward().unwrap();
        // Send it back to its source.
        let (loops, near_by) = (
            "198.51.100.0".parse().unwrap(),
            "10.77.0.1".parse().unwrap(),
        );
        let mut netlink = far.netlink().unwrap();
        netlink.add_route(loops, 24, Some(near_by), "v1").unwrap();
        Wire { near, far }
    }

    fn ping(&self, args: &[&str]) -> Output {
        let mut command = Command::new(HEADEND);
        command.arg("ping").args(args);
        self.near.command(&mut command).unwrap().output().unwrap()
    }

    /// A responder and its output.
    fn responder(&self, address: &str) -> (Child, impl Iterator<Item = String> + use<>) {
        let mut command = Command::new(HEADEND);
        command.args(["ping", "--responder", address]);
        let command = self.far.command(&mut command).unwrap();
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = read_lines(&mut child, 1);
        (child, lines)
    }
}

fn text(output: &Output) -> (String, String) {
    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}

/// A packet captured on the wire: TOS byte, bytes after the IP header, and read time since 1970.
#[derive(Debug, Clone, Copy)]
struct Seen {
    tos: u8,
    size: usize,
    unix_ns: u64,
}

/// Captures all packets that arrive on an interface, until it is stopped.
struct Watch {
    over: Arc<AtomicBool>,
    thread: JoinHandle<std::io::Result<Vec<Seen>>>,
}

impl Watch {
    fn new(host: &Namespace, name: &'static str) -> Watch {
        let over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&over);
        let options = PortOptions::default();
        let port = host.run(|| Port::open(name, &options).unwrap()).unwrap();
        let thread = host.spawn("watch", move || watch(port, &ended)).unwrap();
        Watch { over, thread }
    }

    fn end(self) -> Vec<Seen> {
        self.over.store(true, Ordering::Release);
        self.thread.join().unwrap().unwrap()
    }
}

fn watch(mut port: Port, over: &AtomicBool) -> Vec<Seen> {
    let mut frames = Frames::new(256, 1_500);
    let (mut received, mut seen) = (Vec::new(), Vec::new());
    loop {
        let is_over = over.load(Ordering::Acquire);
        port.receive(&mut frames, &mut received).unwrap();
        let unix_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        for one in received.drain(..) {
            let Received::Frame(handle) = one else {
                continue;
            };
            seen.extend(request(frames.get(handle), unix_ns.as_nanos() as u64));
            frames.give_back(handle);
        }
        if is_over {
            return seen;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Parses an echo request or a UDP packet in an Ethernet frame.
fn request(frame: &[u8], unix_ns: u64) -> Option<Seen> {
    let packet = frame.get(14..)?;
    let (tos, protocol, size, payload) = match packet.first()? >> 4 {
        4 => {
            let whole = usize::from(u16::from_be_bytes([packet[2], packet[3]]));
            (packet[1], packet[9], whole - 20, packet.get(20..whole)?)
        }
        6 => {
            let size = usize::from(u16::from_be_bytes([packet[4], packet[5]]));
            let tos = packet[0] << 4 | packet[1] >> 4;
            (tos, packet[6], size, packet.get(40..40 + size)?)
        }
        _ => return None,
    };
    let is_request = matches!((protocol, payload.first()?), (1, 8) | (58, 128) | (17, _));
    is_request.then_some(Seen { tos, size, unix_ns })
}

#[test]
fn tos_size_and_spacing_on_the_wire_are_those_of_the_plan() {
    let name = "wire::tos_size_and_spacing_on_the_wire_are_those_of_the_plan";
    privileged(name, || {
        let wire = Wire::new();
        let _sink = wire.far.run(|| UdpSocket::bind("10.77.0.2:7007").unwrap());
        let watch = Watch::new(&wire.far, "v1");
        let directory = Directory::new();
        let file = directory.path("out.json");
        // Streams are distinguished by their size.
        let streams = [
            ("10.77.0.2,dscp=ef,size=100", 0xb8, 100),
            ("10.77.0.2,tos=lowdelay,size=1001", 0x10, 1_001),
            ("10.77.0.2,tos=0x03,size=0", 0x03, 0),
            ("fd77::2,dscp=cs6,size=300", 0xc0, 300),
            ("fe80::2%v0,dscp=af41,size=301", 0x88, 301),
            ("10.77.0.2,udp=7007,dscp=le,size=200", 0x04, 200),
        ];
        let mut args = vec!["-q", "-c", "25", "-i", "0.02", "-W", "0.3", "-o", &file];
        args.extend(streams.iter().map(|stream| stream.0));
        let output = wire.ping(&args);
        // No process answers UDP.
        assert_eq!(output.status.code(), Some(1), "{:?}", text(&output));
        let seen = watch.end();
        let result = json(&file);
        let began = result["started_unix_ns"].as_u64().unwrap();
        for (number, (typed, tos, size)) in streams.into_iter().enumerate() {
            let seen: Vec<Seen> = seen
                .iter()
                .filter(|seen| seen.size == size + 8)
                .copied()
                .collect();
            assert_eq!(seen.len(), 25, "{typed}");
            assert!(seen.iter().all(|seen| seen.tos == tos), "{typed}: {seen:?}");
            let samples = &result["streams"][number]["samples"];
            let column =
                |name: &str| -> Vec<u64> { serde_json::from_value(samples[name].clone()).unwrap() };
            let (mut due, mut delays) = (began, Vec::new());
            for ((delta, late), seen) in column("due_delta_ns")
                .iter()
                .zip(column("late_ns"))
                .zip(seen)
            {
                due += delta;
                // No packet arrives before it was sent, apart from the error of reading two clocks.
                let sent = due + late;
                assert!(
                    seen.unix_ns + 1_000_000 > sent,
                    "{typed}: {} {sent}",
                    seen.unix_ns
                );
                delays.push(seen.unix_ns.saturating_sub(sent));
            }
            // Most packets arrive at their recorded send time and with that spacing; pauses of the machine delay some.
            delays.sort_unstable();
            assert!(delays[12] < 10_000_000, "{typed}: {delays:?}");
            assert!(
                column("due_delta_ns")[1..]
                    .iter()
                    .all(|delta| *delta == 20_000_000)
            );
        }
    });
}

#[test]
fn ping_sockets_and_raw_ones_serve_alike_from_interfaces_and_addresses() {
    let name = "wire::ping_sockets_and_raw_ones_serve_alike_from_interfaces_and_addresses";
    privileged(name, || {
        let wire = Wire::new();
        // First with a group range that excludes the process, then with one that includes every process.
        for groups in ["1 0", "0 2147483647"] {
            wire.near.set("ipv4/ping_group_range", groups).unwrap();
            for args in [
                &["10.77.0.2"][..],
                &["fd77::2"],
                &["fe80::2%v0"],
                &["-I", "v0", "fe80::2"],
                &["-I", "v0", "10.77.0.2"],
                &["-I", "10.77.0.1", "10.77.0.2"],
                &["-I", "fd77::1", "-I", "v0", "fd77::2"],
                &["-s", "0", "10.77.0.2", "fd77::2"],
                &["-M", "do", "-s", "1472", "10.77.0.2"],
            ] {
                let common = ["-c", "3", "-i", "0.01"];
                let output = wire.ping(&[&common[..], args].concat());
                let (text, errors) = text(&output);
                assert_eq!(output.status.code(), Some(0), "{args:?}: {errors}{text}");
                assert!(text.contains("3 packets transmitted, 3 received"), "{text}");
                let address = args.last().unwrap();
                let line = format!("bytes from {address}: icmp_seq=3 ttl=64 time=");
                assert!(text.contains(&line), "{line} in {text}");
            }
            let output = wire.ping(&["-c", "1", "fe80::2"]);
            let errors = text(&output).1;
            assert_eq!(output.status.code(), Some(2));
            assert!(errors.contains("write fe80::2%eth0, or use -I"), "{errors}");
        }
    });
}

#[test]
fn errors_of_the_network_are_told_as_they_come() {
    let name = "wire::errors_of_the_network_are_told_as_they_come";
    privileged(name, || {
        let wire = Wire::new();
        for groups in ["1 0", "0 2147483647"] {
            wire.near.set("ipv4/ping_group_range", groups).unwrap();
            for (args, line) in [
                (
                    &["192.0.2.1"][..],
                    "From 10.77.0.2 icmp_seq=1 Destination Net Unreachable\n",
                ),
                (
                    &["-t", "1", "198.51.100.1"],
                    "From 10.77.0.2 icmp_seq=1 Time to live exceeded\n",
                ),
                (
                    &["--udp", "9", "fd77::2,size=48"],
                    "From fd77::2 udp_seq=1 Destination unreachable: Port unreachable\n",
                ),
            ] {
                let output = wire.ping(&[&["-c", "1", "-W", "0.5"][..], args].concat());
                let (text, errors) = text(&output);
                assert_eq!(output.status.code(), Some(1), "{args:?}: {errors}{text}");
                assert!(text.contains(line), "{line} in {text}{errors}");
                assert!(text.contains("+1 errors, 100% packet loss"), "{text}");
            }
            let too_long = [
                "-c",
                "3",
                "-i",
                "0.01",
                "-M",
                "do",
                "-s",
                "1473",
                "10.77.0.2",
            ];
            let (text, errors) = text(&wire.ping(&too_long));
            let said = "headend ping: 10.77.0.2: local error: message too long, mtu=1500\n";
            assert_eq!(errors.matches(said).count(), 1, "{errors}");
            assert!(
                text.contains("3 packets transmitted, 0 received, 100% packet loss"),
                "{text}"
            );
        }
        // Reported while it runs, not at its end.
        let mut command = Command::new(HEADEND);
        command.args(["ping", "-i", "0.05", "192.0.2.1"]);
        let command = wire.near.command(&mut command).unwrap();
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let _rest = read_lines(&mut child, 2);
        assert!(child.try_wait().unwrap().is_none());
        crate::udp::terminate(&child);
        assert_eq!(child.wait().unwrap().code(), Some(1));
    });
}

#[test]
fn an_interface_that_vanishes_ends_the_run_and_what_was_measured_is_kept() {
    let name = "wire::an_interface_that_vanishes_ends_the_run_and_what_was_measured_is_kept";
    privileged(name, || {
        for args in [
            &["-I", "v0", "10.77.0.2"][..],
            &["-I", "v0", "fd77::2"],
            &["fe80::2%v0"],
            &["-I", "v0", "--udp", "7007", "10.77.0.2"],
            &["--udp", "7007", "fe80::2%v0"],
        ] {
            let wire = Wire::new();
            let (mut responder, _lines) = wire.responder("7007");
            let directory = Directory::new();
            let (file, plot) = (directory.path("out.json"), directory.path("out.svg"));
            let mut command = Command::new(HEADEND);
            command.args(["ping", "-i", "0.01", "-o", &file, "--plot", &plot]);
            let command = wire.near.command(command.args(args)).unwrap();
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let rest = read_lines(&mut child, 20);
            wire.near.netlink().unwrap().delete("v0").unwrap();
            let rest: Vec<String> = rest.collect();
            let errors = text(&child.wait_with_output().unwrap()).1;
            assert_eq!(
                errors, "headend ping: the interface v0 has vanished\n",
                "{args:?}"
            );
            assert!(rest.last().unwrap().starts_with("rtt min/avg/max/mdev = "));
            let result = json(&file);
            let received = result["streams"][0]["summary"]["received"]
                .as_u64()
                .unwrap();
            assert!(received >= 19, "{args:?}: {received}");
            assert!(fs::read_to_string(&plot).unwrap().starts_with("<svg "));
            crate::udp::terminate(&responder);
            assert!(responder.wait().unwrap().success());
        }
    });
}

#[test]
fn several_streams_keep_their_errors_apart() {
    let name = "wire::several_streams_keep_their_errors_apart";
    privileged(name, || {
        let wire = Wire::new();
        let directory = Directory::new();
        let file = directory.path("out.json");
        let args = ["-q", "-c", "5", "-i", "0.02", "-W", "0.5", "-o", &file];
        let hosts = ["10.77.0.2", "192.0.2.1", "192.0.2.2,size=0", "fd77::2"];
        let output = wire.ping(&[&args[..], &hosts].concat());
        assert_eq!(output.status.code(), Some(1), "{:?}", text(&output));
        let result = json(&file);
        let streams = result["streams"].as_array().unwrap();
        let errors: HashMap<&str, bool> = streams
            .iter()
            .map(|stream| {
                let host = stream["plan"]["host"].as_str().unwrap();
                (host, stream["summary"]["errors"].as_u64().unwrap() > 0)
            })
            .collect();
        let expected = [
            ("10.77.0.2", false),
            ("192.0.2.1", true),
            ("192.0.2.2", true),
            ("fd77::2", false),
        ];
        assert_eq!(errors, HashMap::from(expected));
    });
}
