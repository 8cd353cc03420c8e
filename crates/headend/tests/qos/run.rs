//! Tests `headend qos run`, `show` and `reload` between two hosts.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reactor::port::offloads::{Settings, Switch};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Bench, POLICY, until};

/// A numbered datagram.
fn numbered(n: u32) -> [u8; 972] {
    let mut payload = [0; 972];
    payload[..4].copy_from_slice(&n.to_be_bytes());
    payload
}

#[test]
fn a_policy_is_in_force_until_a_signal_and_nothing_is_left_changed() {
    for signal in [Signal::TERM, Signal::INT] {
        let bench = Bench::new(&format!("force-{}", signal.as_raw()));
        let before = ["lan0", "wan0"].map(|name| bench.offloads(name));
        assert!(before[0].contains(&"tso"), "{before:?}");
        let mut shaper = bench.start();
        assert!(
            shaper
                .said
                .contains("up 80Mbit, down 90Mbit by policy.toml"),
            "{}",
            shaper.said
        );
        let during = ["lan0", "wan0"].map(|name| bench.offloads(name));
        assert_eq!(during, [const { Vec::<&str>::new() }; 2]);
        let socket = fs::metadata(bench.home.path("control")).unwrap();
        assert_eq!(socket.permissions().mode() & 0o777, 0o660);
        let (sender, receiver) = bench.sockets();
        sender.send(&numbered(7)).unwrap();
        assert_eq!(receiver.recv(&mut [0; 2_000]).unwrap(), 972);
        shaper.signal(signal);
        let (status, said) = shaper.end();
        assert_eq!(status.code(), Some(0), "{}", shaper.errors());
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(
            lines,
            [
                "up: sent 1 packets (1000 B), dropped 0, marked 0",
                "down: sent 0 packets (0 B), dropped 0, marked 0"
            ]
        );
        assert_eq!(["lan0", "wan0"].map(|name| bench.offloads(name)), before);
        assert!(!bench.home.path("control").exists());
    }
}

#[test]
fn offloads_come_back_after_a_kill_and_the_socket_is_taken_over() {
    let bench = Bench::new("kill");
    let before = ["lan0", "wan0"].map(|name| bench.offloads(name));
    let mut shaper = bench.start();
    shaper.signal(Signal::KILL);
    assert_eq!(shaper.end().0.code(), None);
    until("the offloads", || {
        (["lan0", "wan0"].map(|name| bench.offloads(name)) == before).then_some(())
    });
    assert!(bench.home.path("control").exists());
    let mut next = bench.start();
    next.signal(Signal::TERM);
    assert_eq!(next.end().0.code(), Some(0));
}

#[test]
fn offloads_come_back_after_the_shaper_and_its_keeper_are_killed() {
    let bench = Bench::new("kill-both");
    let before = ["lan0", "wan0"].map(|name| bench.offloads(name));
    assert!(!before[0].is_empty());
    let mut shaper = bench.start();
    let process = shaper.process();
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    let keeper: i32 = children.trim().parse().unwrap();
    let keeper = rustix::process::Pid::from_raw(keeper).unwrap();
    rustix::process::kill_process(keeper, Signal::KILL).unwrap();
    shaper.signal(Signal::KILL);
    assert_eq!(shaper.end().0.code(), None);
    let off = ["lan0", "wan0"].map(|name| bench.offloads(name));
    assert_eq!(off, [[""; 0]; 2], "nobody was left to restore them");
    // The next one takes over what was on before, and restores it.
    let mut next = bench.start();
    let names = before[0].join(", ");
    assert!(
        next.said.contains(&format!("off at lan0: {names}")),
        "{}",
        next.said
    );
    next.signal(Signal::TERM);
    assert_eq!(next.end().0.code(), Some(0));
    assert_eq!(["lan0", "wan0"].map(|name| bench.offloads(name)), before);
}

#[test]
fn an_offload_that_another_program_turns_on_is_off_again() {
    let bench = Bench::new("turned-on");
    let before = ["lan0", "wan0"].map(|name| bench.offloads(name));
    let mut shaper = bench.start();
    let checksum = |on: Option<bool>| {
        let work = move || {
            let settings = Settings::of("lan0").unwrap();
            if let Some(on) = on {
                settings.set(Switch::TxChecksum, on).unwrap();
            }
            settings.is_on(Switch::TxChecksum).unwrap()
        };
        bench.middle.run(work).unwrap()
    };
    assert_eq!(checksum(None), Some(false));
    checksum(Some(true));
    until("that it is off", || {
        (checksum(None) == Some(false)).then_some(())
    });
    shaper.signal(Signal::TERM);
    assert_eq!(shaper.end().0.code(), Some(0));
    let errors = shaper.errors();
    assert!(
        errors.contains("lan0: another program turned on tx checksum"),
        "{errors}"
    );
    assert_eq!(["lan0", "wan0"].map(|name| bench.offloads(name)), before);
}

#[test]
fn a_second_shaper_on_an_interface_is_refused_until_the_first_has_ended() {
    let bench = Bench::new("second");
    let mut shaper = bench.start();
    let second = |socket: &str| {
        let mut words = Bench::RUN.to_vec();
        words[8] = socket;
        bench.command(&words).output().unwrap()
    };
    let refused = second("other");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let errors = String::from_utf8(refused.stderr).unwrap();
    let process = shaper.process();
    let words =
        format!("--lan lan0: another headend qos run (process {process}) shapes this interface");
    assert!(errors.contains(&words), "{errors}");
    assert!(!bench.home.path("other").exists());
    // The first one works on.
    let (sender, receiver) = bench.sockets();
    sender.send(&numbered(7)).unwrap();
    assert_eq!(receiver.recv(&mut [0; 2_000]).unwrap(), 972);
    // Its lock ends with it, and nothing else needs to be removed.
    shaper.signal(Signal::KILL);
    assert_eq!(shaper.end().0.code(), None);
    let mut next = bench.start();
    next.signal(Signal::TERM);
    assert_eq!(next.end().0.code(), Some(0));
}

#[test]
fn an_address_of_a_host_that_forwards_is_advised_against() {
    let bench = Bench::new("forwards");
    let check = ["check", "policy.toml", "--lan", "lan0", "--wan", "wan0"];
    let advice = || {
        let output = bench.command(&check).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let address = "192.0.2.9".parse().unwrap();
    let mut netlink = bench.middle.netlink().unwrap();
    netlink.add_address("wan0", address, 24).unwrap();
    bench.middle.set("ipv4/ip_forward", "0").unwrap();
    assert!(!advice().contains("forwards too"), "{}", advice());
    bench.middle.set("ipv4/ip_forward", "1").unwrap();
    let words = "--wan wan0: has the address 192.0.2.9, and the kernel forwards too";
    assert!(advice().contains(words), "{}", advice());
    let mut shaper = bench.start();
    assert!(shaper.errors().contains(words), "{}", shaper.errors());
    shaper.signal(Signal::TERM);
    assert_eq!(shaper.end().0.code(), Some(0));
}

#[test]
fn what_is_shown_as_json_is_what_was_sent() {
    let bench = Bench::new("sums");
    let _shaper = bench.start();
    let (sender, receiver) = bench.sockets();
    let mut buffer = [0; 2_000];
    for n in 0..300_u32 {
        sender.send(&numbered(n)[..100 + n as usize]).unwrap();
        assert_eq!(receiver.recv(&mut buffer).unwrap(), 100 + n as usize);
    }
    let bytes: u64 = (0..300).map(|n| 128 + n).sum();
    let shown = bench.shown();
    assert_eq!(shown["schema"], "qos/1");
    let up = &shown["up"];
    assert_eq!((&up["packets"], &up["bytes"]), (&json!(300), &json!(bytes)));
    assert_eq!(
        (&up["drops"], &up["qlen"], &up["backlog"]),
        (&json!(0), &json!(0), &json!(0))
    );
    assert_eq!(up["rate_bps"], 80_000_000);
    assert_eq!(up["lane"]["packets"], 300);
    assert_eq!(shown["down"]["packets"], 0);
    // ARP bypasses the queues in both directions.
    let past = up["lane"]["past"].as_u64().unwrap();
    assert!(past > 0);
    assert_eq!(shown["lan"]["received"], 300 + past);
    assert_eq!(shown["wan"]["sent"], 300 + past);
    let nodes = up["nodes"].as_array().unwrap();
    let of = |handle: &str| nodes.iter().find(|node| node["handle"] == handle).unwrap();
    for handle in ["1:", "1:1", "1:20", "20:"] {
        assert_eq!(of(handle)["bytes"], json!(bytes), "{handle}");
    }
    assert_eq!(
        (&of("1:1")["name"], &of("1:10")["name"]),
        (&json!("link"), &json!("first"))
    );
    assert_eq!(
        (&of("1:10")["packets"], &of("10:")["packets"]),
        (&json!(0), &json!(0))
    );
    // The text output has the same totals.
    let text = bench.ask(&["show", "--totals"]).stdout;
    let text = String::from_utf8(text).unwrap();
    let sent = format!(" Sent {bytes} bytes 300 pkt (dropped 0, ");
    assert_eq!(text.matches(&sent).count(), 4, "{text}");
}

#[test]
fn a_reload_under_load_loses_and_overtakes_nothing() {
    let bench = Bench::new("reload");
    let shaper = bench.start();
    let (sender, receiver) = bench.sockets();
    let is_over = AtomicBool::new(false);
    let got: Vec<u32> = std::thread::scope(|scope| {
        let sending = scope.spawn(|| {
            let mut n = 0;
            while !is_over.load(Ordering::Relaxed) {
                sender.send(&numbered(n)).unwrap();
                n += 1;
                // 8 Mbit/s at most, below the link's rate.
                std::thread::sleep(Duration::from_millis(1));
            }
            n
        });
        let receiving = scope.spawn(|| {
            let mut got = Vec::new();
            let mut buffer = [0; 2_000];
            loop {
                let length = receiver.recv(&mut buffer).unwrap();
                if length < 100 {
                    return got;
                }
                got.push(u32::from_be_bytes(buffer[..4].try_into().unwrap()));
            }
        });
        let templates = ["gamer", "flows", "sfq", "codel", "bands", "home"];
        for (reloads, template) in (1..).zip(templates) {
            bench.home.write(
                "policy.toml",
                &format!("{POLICY}[shape]\ntemplate = \"{template}\"\n"),
            );
            if reloads % 2 == 0 {
                shaper.signal(Signal::HUP);
            } else {
                let output = bench.ask(&["reload"]);
                let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                assert_eq!(output.status.code(), Some(0), "{errors}");
                assert_eq!(output.stdout, b"policy.toml: in force\n");
            }
            until("the reload", || {
                (bench.shown()["reloads"] == reloads).then_some(())
            });
        }
        is_over.store(true, Ordering::Relaxed);
        let sent = sending.join().unwrap();
        sender.send(&[0; 9]).unwrap();
        let got = receiving.join().unwrap();
        assert_eq!(got.len(), sent as usize);
        got
    });
    assert!(got.iter().copied().eq(0..got.len() as u32), "out of order");
    let up = &bench.shown()["up"];
    assert_eq!(up["packets"], got.len() + 1, "counted over all trees");
    assert_eq!(up["drops"], 0);
}

#[test]
fn a_bad_policy_is_told_and_the_old_one_kept() {
    let bench = Bench::new("bad");
    let shaper = bench.start();
    bench.home.write(
        "policy.toml",
        "[link]\nup = \"9mbit\"\ndown = \"2furlong\"\n",
    );
    shaper.signal(Signal::HUP);
    let fault = "policy.toml:3:8: link.down: \"2furlong\" is no rate";
    until("the fault", || {
        shaper.errors().contains(fault).then_some(())
    });
    until("the rest", || {
        shaper.errors().contains("is kept as it was").then_some(())
    });
    let output = bench.ask(&["reload"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with(fault));
    fs::remove_file(bench.home.path("policy.toml")).unwrap();
    let output = bench.ask(&["reload"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors.starts_with("policy.toml: cannot be read: No such file")
            && errors.lines().count() == 1,
        "{errors}"
    );
    let shown = bench.shown();
    assert_eq!(
        (&shown["up"]["rate_bps"], &shown["reloads"]),
        (&json!(80_000_000), &json!(0))
    );
    bench.home.write("policy.toml", "[link]\nup = \"9mbit\"\n");
    assert_eq!(bench.ask(&["reload"]).status.code(), Some(0));
    let shown = bench.shown();
    assert_eq!(
        (&shown["up"]["rate_bps"], &shown["down"]["rate_bps"]),
        (&json!(9_000_000), &Value::Null)
    );
}

#[test]
fn an_interface_that_vanishes_ends_it_and_the_other_is_as_before() {
    let bench = Bench::new("vanish");
    let before = bench.offloads("lan0");
    let mut shaper = bench.start();
    bench.middle.netlink().unwrap().delete("wan0").unwrap();
    let (status, _) = shaper.end();
    assert_eq!(status.code(), Some(2));
    assert_eq!(
        shaper.errors(),
        "headend qos: wan0: the interface has vanished\n"
    );
    assert_eq!(bench.offloads("lan0"), before);
    assert!(!bench.home.path("control").exists());
}

// long: a table of cases
#[test]
fn what_cannot_be_is_one_line_and_changes_nothing() {
    let bench = Bench::new("mistakes");
    bench
        .home
        .write("bad.toml", "[link]\nup = \"2.3furlong\"\n");
    let before = ["lan0", "wan0"].map(|name| bench.offloads(name));
    let running = UnixListener::bind(bench.home.path("taken")).unwrap();
    for (policy, lan, wan, control, said) in [
        ("bad.toml", "lan0", "wan0", "c", "bad.toml:2:6: link.up: "),
        (
            "none.toml",
            "lan0",
            "wan0",
            "c",
            "none.toml: cannot be read: No such file",
        ),
        ("policy.toml", "lan0", "lan0", "c", "the same interface"),
        (
            "policy.toml",
            "lan0",
            "nope",
            "c",
            "--wan nope: there is no such interface",
        ),
        (
            "policy.toml",
            "../lan0",
            "wan0",
            "c",
            "--lan ../lan0: there is no such interface",
        ),
        (
            "policy.toml",
            "lan0",
            "wan0",
            "no/c",
            "control socket no/c: ",
        ),
        (
            "policy.toml",
            "lan0",
            "wan0",
            "policy.toml",
            "exists and is not a socket",
        ),
        ("policy.toml", "lan0", "wan0", "taken", " answers on taken"),
    ] {
        let words = [
            "run", "--policy", policy, "--lan", lan, "--wan", wan, "--socket", control,
        ];
        let output = bench.command(&words).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {errors}");
        assert!(errors.contains(said), "{words:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{words:?}: {errors}");
        assert!(output.stdout.is_empty());
        assert_eq!(["lan0", "wan0"].map(|name| bench.offloads(name)), before);
        assert!(!bench.home.path("c").exists());
    }
    drop(running);
    bench
        .middle
        .netlink()
        .unwrap()
        .set_up("wan0", false)
        .unwrap();
    let output = bench.command(&Bench::RUN).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(
        errors.ends_with("headend qos: wan0: the interface is down; ip link set wan0 up\n"),
        "{errors}"
    );
    let output = bench.home.run(&["show", "--socket", "c"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(errors.contains("nothing runs at c"), "{errors}");
}

#[test]
fn nobody_is_privileged_while_packets_are_forwarded() {
    let bench = Bench::new("privileges");
    let shaper = bench.start();
    let pid = bench.shown()["pid"].as_u64().unwrap();
    let mut threads = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
        for set in [
            "CapPrm:\t0000000000000000",
            "CapEff:\t0000000000000000",
            "NoNewPrivs:\t1",
        ] {
            assert!(status.contains(set), "{set}: {status}");
        }
        threads += 1;
    }
    assert!(threads >= 2, "main thread and engine");
    drop(shaper);
}

#[test]
fn clients_are_limited_and_rubbish_is_refused() {
    let bench = Bench::new("clients");
    let _shaper = bench.start();
    let connect = || UnixStream::connect(bench.home.path("control")).unwrap();
    let line = |stream: &UnixStream| -> Value {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let mut rude = connect();
    for (said, code) in [
        ("nonsense", "bad-request"),
        ("{\"v\":9,\"id\":1,\"do\":\"qos.show\"}", "version"),
        ("{\"v\":1,\"id\":1,\"do\":\"qos.dance\"}", "bad-request"),
        (
            "{\"v\":1,\"id\":1,\"do\":\"qos.show\",\"colour\":1}",
            "bad-request",
        ),
    ] {
        writeln!(rude, "{said}").unwrap();
        assert_eq!(line(&rude)["error"]["code"], code, "{said}");
    }
    // A client that sends 1,000 requests and reads nothing does not block the others.
    rude.set_nonblocking(true).unwrap();
    let ask = b"{\"v\":1,\"id\":1,\"do\":\"qos.show\"}\n".repeat(1_000);
    let _ = rude.write(&ask).unwrap();
    assert_eq!(bench.shown()["up"]["packets"], 0);
    let crowd: Vec<UnixStream> = (0..15).map(|_| connect()).collect();
    let refused = until("a refusal", || {
        let last = connect();
        last.set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let mut said = String::new();
        let _ = (&last).read_to_string(&mut said);
        (!said.is_empty()).then_some(said)
    });
    assert!(refused.contains("\"limit\""), "{refused}");
    drop(crowd);
    until("room", || {
        bench
            .ask(&["show", "--totals"])
            .status
            .success()
            .then_some(())
    });
}

#[test]
fn who_closes_standard_output_ends_nothing() {
    let bench = Bench::new("closed");
    let mut child = bench
        .command(&Bench::RUN)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    until("an answer", || {
        bench
            .ask(&["show", "--totals"])
            .status
            .success()
            .then_some(())
    });
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let status = until("the end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}
