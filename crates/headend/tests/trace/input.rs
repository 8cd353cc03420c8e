//! Tests several files, standard input, live captures and faulty files.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::home::{Home, plain, records, said};

#[test]
fn files_are_ordered_by_their_first_packet_and_taken_as_one() {
    let home = Home::new("order")
        .with("fast_reuse.dmp.gz")
        .with("urgent.dmp.gz");
    let one = home.good("-l fast_reuse.dmp.gz urgent.dmp.gz");
    assert_eq!(home.good("-l urgent.dmp.gz fast_reuse.dmp.gz"), one);
    // One capture is from 1998, the other from 2001.
    assert!(
        one.starts_with("2 args remaining, starting with 'fast_reuse.dmp.gz'\n"),
        "{one}"
    );
    assert!(one.contains("Running file 'urgent.dmp.gz' (2 of 2)\n"));
    assert!(
        one.contains("\n9989 packets seen, 9989 TCP packets traced\ntrace files elapsed time: ")
    );
    assert!(one.contains("\tfilename:      fast_reuse.dmp.gz\n"));
}

#[test]
fn standard_input_is_a_file_like_others() {
    let home = Home::new("stdin")
        .with("fast_reuse.dmp.gz")
        .with("urgent.dmp.gz");
    for name in ["-", "stdin"] {
        let file = std::fs::File::open(home.0.join("fast_reuse.dmp.gz")).unwrap();
        let output = home
            .command(&format!("-l {name}"))
            .stdin(file)
            .output()
            .unwrap();
        let (read, named) = (said(output), home.good("-l fast_reuse.dmp.gz"));
        assert_eq!(read.err, "");
        let named = named.replace("'fast_reuse.dmp.gz'", &format!("'{name}'"));
        let named = named.replace(":      fast_reuse.dmp.gz", &format!(":      {name}"));
        assert_eq!(read.out, named);
    }
    let file = std::fs::File::open(home.0.join("fast_reuse.dmp.gz")).unwrap();
    let mut command = home.command("- urgent.dmp.gz");
    let read = said(command.stdin(file).output().unwrap());
    assert!(
        read.out
            .starts_with("2 args remaining, starting with '-'\n"),
        "{}",
        read.out
    );
    assert!(read.out.contains("9989 packets seen"));
}

/// A child that reads a pipe, its standard error, and the pipe.
struct Live {
    child: std::process::Child,
    pipe: std::process::ChildStdin,
    errors: BufReader<std::process::ChildStderr>,
}

fn live(home: &Home, line: &str) -> Live {
    let mut command = home.command(line);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pipe = child.stdin.take().unwrap();
    let errors = BufReader::new(child.stderr.take().unwrap());
    Live {
        child,
        pipe,
        errors,
    }
}

#[test]
fn a_live_capture_shows_what_closes_and_reports_on_a_signal() {
    let home = Home::new("live").with("fast_reuse.dmp.gz");
    let octets = plain("fast_reuse.dmp.gz");
    let (header, records) = records(&octets);
    let mut live = live(&home, "-");
    // A capture still being written: the first 200 packets, and part of the next.
    live.pipe.write_all(header).unwrap();
    live.pipe.write_all(&records[..200].concat()).unwrap();
    live.pipe.write_all(&records[200][..20]).unwrap();
    live.pipe.flush().unwrap();
    let mut line = String::new();
    live.errors.read_line(&mut line).unwrap();
    assert!(
        line.starts_with("closed: 132.235.67.21:9080 - 132.235.67.36:3330 "),
        "{line}"
    );
    kill_process(Pid::from_child(&live.child), Signal::INT).unwrap();
    let output = live.child.wait_with_output().unwrap();
    assert!(output.status.success());
    let report = String::from_utf8(output.stdout).unwrap();
    assert!(
        report.contains("200 packets seen, 200 TCP packets traced"),
        "{report}"
    );
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut live.errors, &mut rest).unwrap();
    assert!(!rest.contains("ends inside"), "{rest}");
}

#[test]
fn continuous_output_comes_as_connections_end() {
    let home = Home::new("continuous").with("fast_reuse.dmp.gz");
    let octets = plain("fast_reuse.dmp.gz");
    let mut live = live(
        &home,
        "--continuous --noclosings --json --idle 2s --idle-closed 1s -",
    );
    live.pipe.write_all(&octets).unwrap();
    live.pipe.flush().unwrap();
    // The pipe is still open.
    let mut out = BufReader::new(live.child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(
        line.starts_with("{\"schema\":\"trace.connection/1\",\"kind\":\"connection\""),
        "{line}"
    );
    drop(live.pipe);
    let lines = out.lines().map(Result::unwrap).count() + 1;
    assert!(lines >= 18, "{lines}");
    assert!(live.child.wait().unwrap().success());
    let mut errors = String::new();
    std::io::Read::read_to_string(&mut live.errors, &mut errors).unwrap();
    assert_eq!(errors, "");
}

#[test]
fn a_file_cut_anywhere_is_read_as_far_as_it_goes() {
    let octets = plain("fast_reuse.dmp.gz");
    let (header, records) = records(&octets);
    let whole = header.len() + records[..100].concat().len();
    let home = Home::new("cut");
    for extra in [1, 15, 16, 40] {
        home.put("cut.pcap", &octets[..whole + extra]);
        let said = home.run("cut.pcap");
        assert_eq!(said.status, 1);
        assert!(
            said.out
                .contains("100 packets seen, 100 TCP packets traced"),
            "{}",
            said.out
        );
        let place =
            format!("cut.pcap: first fault at octet {whole}: the file ends inside a record");
        assert!(said.err.contains(&place), "{}", said.err);
        assert!(
            said.err.contains("1 x the file ends inside a record"),
            "{}",
            said.err
        );
    }
}

#[test]
fn a_cut_gzip_stream_is_read_as_far_as_it_goes() {
    let home = Home::new("gzip").with("fast_reuse.dmp.gz");
    let octets = home.read("fast_reuse.dmp.gz");
    home.put("cut.gz", &octets[..octets.len() / 2]);
    let said = home.run("cut.gz");
    assert_eq!(said.status, 1);
    assert!(said.out.contains(" TCP packets traced"));
    assert!(
        said.err.contains("the compressed stream is cut short"),
        "{}",
        said.err
    );
}

#[test]
fn what_is_no_capture_is_refused_and_the_rest_is_read() {
    let home = Home::new("garbage").with("reno.epeek.gz");
    home.put("text", b"12:00:00 IP 10.0.0.1 > 10.0.0.2: tcp 0\n");
    home.put("empty", b"");
    for name in ["text", "empty", "nosuch", "."] {
        let said = home.run(name);
        assert_eq!(said.status, 1, "{name}");
        assert!(
            said.err.contains(&format!("headend: {name}: ")),
            "{}",
            said.err
        );
        let said = home.run(&format!("{name} reno.epeek.gz"));
        assert_eq!(said.status, 1, "{name}");
        assert!(said.out.contains("TCP connection info:"), "{name}");
    }
}

#[test]
fn octets_changed_by_chance_never_stop_the_program() {
    let octets = plain("fast_reuse.dmp.gz");
    let home = Home::new("chance");
    let mut state = 1u64;
    let mut random = || {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize
    };
    for _ in 0..20 {
        let mut changed = octets.clone();
        for _ in 0..50 {
            let at = 24 + random() % (changed.len() - 24);
            changed[at] = random() as u8;
        }
        home.put("changed.pcap", &changed);
        let said = home.run("-lrWu -w --checksum -p -e -Z -G changed.pcap");
        assert!(matches!(said.status, 0 | 1), "{}", said.err);
        assert!(said.out.contains("packets seen"), "{}", said.err);
    }
}

#[test]
fn what_was_seen_is_counted_by_reason() {
    let home = Home::new("seen").with("udpping.dmp.gz");
    let mut octets = plain("fast_reuse.dmp.gz");
    // The first frame becomes ARP, and the third a later fragment.
    let (header, records) = records(&octets);
    let third = header.len() + records[0].len() + records[1].len();
    octets[24 + 16 + 12..24 + 16 + 14].copy_from_slice(&[8, 6]);
    octets[third + 16 + 14 + 7] = 9;
    home.put("x.pcap", &octets);
    let said = home.run("-w x.pcap");
    assert_eq!(said.status, 0);
    for line in [
        "513 frames",
        "512 IP packets",
        "1 frames skipped, not IP",
        "1 later fragments",
    ] {
        assert!(
            said.err.contains(&format!("headend: {line}\n")),
            "{line}: {}",
            said.err
        );
    }
}

#[test]
fn connections_outside_of_junk_are_reported_and_the_skipped_bytes_are_named() {
    let home = Home::new("junk");
    let octets = plain("fast_reuse.dmp.gz");
    let (header, records) = records(&octets);
    let (first, rest) = records.split_at(200);
    let junk = vec![0xa5; 777];
    let at = header.len() + first.concat().len();
    home.put("whole", &octets);
    home.put(
        "junk",
        &[header, &first.concat(), &junk, &rest.concat()].concat(),
    );
    let whole = home.good("-l whole").replace("whole", "junk");
    let said = home.run("-l junk");
    assert_eq!((said.status, said.out == whole), (1, true));
    for line in [
        format!("headend: junk: first fault at octet {at}: a record longer than any packet\n"),
        format!("headend: junk: skipped 777 octets at octet {at}\n"),
        "(the reading resumed at the next record found)\n".to_owned(),
    ] {
        assert!(said.err.contains(&line), "{line}: {}", said.err);
    }
    let said = home.run("-l --no-resync junk");
    assert_eq!(said.status, 1);
    assert!(said.out.contains("200 packets seen"), "{}", said.out);
    assert!(said.err.contains("(the rest of the file was not read)"));
}

#[test]
fn an_interface_that_cannot_be_captured_is_an_error_with_its_remedy() {
    let home = Home::new("interface");
    for line in ["--live no-such", "why --live no-such"] {
        let said = home.run(line);
        assert_eq!((said.status, said.out.as_str()), (1, ""), "{line}");
        // With the privilege, the interface is looked for.
        let denied = said.err.contains("no-such: capturing needs CAP_NET_RAW");
        let unknown = said.err.contains("no-such: no such interface");
        assert!(denied || unknown, "{line}: {}", said.err);
    }
}
