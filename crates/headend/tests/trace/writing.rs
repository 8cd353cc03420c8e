//! Tests the files that are written besides the report.

use crate::home::{Home, frame, pcap, plain, records};

#[test]
fn graphs_are_written_for_the_chosen_connections() {
    let home = Home::new("graphs").with("fast_reuse.dmp.gz");
    home.good("-S -o2 fast_reuse.dmp.gz");
    assert!(home.has("c2d_tsg.xpl") && home.has("d2c_tsg.xpl"));
    assert!(!home.has("a2b_tsg.xpl") && !home.has("c2d_rtt.xpl"));
    assert!(home.text("c2d_tsg.xpl").starts_with("timeval double\n"));
    home.good("-G -o2 --output_prefix=all- fast_reuse.dmp.gz");
    for kind in [
        "c2d_tsg",
        "c2d_rtt",
        "c2d_tput",
        "c2d_owin",
        "c2d_ssize",
        "c_d_tline",
    ] {
        assert!(home.has(&format!("all-{kind}.xpl")), "{kind}");
    }
    home.good("-zx -S -o2 --output_prefix=zero- fast_reuse.dmp.gz");
    assert_ne!(home.read("zero-c2d_tsg.xpl"), home.read("c2d_tsg.xpl"));
}

#[test]
fn pictures_take_the_place_of_xplot_files() {
    let home = Home::new("pictures").with("fast_reuse.dmp.gz");
    home.good("--svg --html -o2 --output_dir=out fast_reuse.dmp.gz");
    assert!(home.text("out/c2d_tsg.svg").contains("<svg"));
    assert!(home.text("out/c2d.html").contains("<html"));
    assert!(
        !home.has("out/c2d_tsg.xpl") && !home.has("out/c2d_rtt.svg") && !home.has("out/a2b.html")
    );
    home.good("--svg -R -o2 fast_reuse.dmp.gz");
    assert!(home.has("c2d_rtt.svg") && !home.has("c2d_tsg.svg"));
}

#[test]
fn the_directory_of_the_graphs_is_made_with_those_above_it() {
    let home = Home::new("directory").with("fast_reuse.dmp.gz");
    home.good("-S -o1 --output_dir=new/graphs fast_reuse.dmp.gz");
    assert!(home.has("new/graphs/a2b_tsg.xpl"));
    // A second run finds the directory.
    home.good("-R -o1 --output_dir=new/graphs fast_reuse.dmp.gz");
    assert!(home.has("new/graphs/a2b_rtt.xpl"));
}

#[test]
fn a_file_that_cannot_be_written_fails() {
    let home = Home::new("unwritable").with("fast_reuse.dmp.gz");
    // A file has the name of the directory.
    std::fs::write(home.0.join("nowhere"), "").unwrap();
    for flags in [
        "-S --output_dir=nowhere/x",
        "-Onowhere/x",
        "--parquet nowhere/x",
    ] {
        let said = home.run(&format!("{flags} fast_reuse.dmp.gz"));
        assert_eq!(said.status, 1, "{flags}");
        assert!(
            said.err.contains("cannot write nowhere")
                || said.err.contains("cannot create the directory nowhere"),
            "{flags}: {}",
            said.err
        );
    }
}

#[test]
fn packets_are_printed_before_the_report() {
    let home = Home::new("print")
        .with("fast_reuse.dmp.gz")
        .with("udpping.dmp.gz");
    let all = home.good("-p fast_reuse.dmp.gz");
    assert_eq!(
        all.matches("\nPacket ").count() + usize::from(all.starts_with("Packet ")),
        513
    );
    assert!(all.contains("\tTCP SPRT: 9080 \n"));
    let one = home.good("-P -o1 fast_reuse.dmp.gz");
    assert_eq!(one.matches("Packet ").count(), 14);
    assert!(
        one.contains("(R)")
            || !home
                .good("-P -o2 --print_seq_zero fast_reuse.dmp.gz")
                .is_empty()
    );
    assert!(
        home.good("-P -o2 --print_seq_zero fast_reuse.dmp.gz")
            .contains("(R)")
    );
    let data = home.good("--dump_packet_data udpping.dmp.gz");
    assert!(
        data.contains("   data (1404 bytes):\n\\000"),
        "{}",
        &data[..600]
    );
}

#[test]
fn saved_packets_are_a_capture_again() {
    let home = Home::new("save").with("fast_reuse.dmp.gz");
    home.good("-o2 -Oout.pcap fast_reuse.dmp.gz");
    let again = home.good("out.pcap");
    assert!(
        again.contains("\n70 packets seen, 70 TCP packets traced\n"),
        "{again}"
    );
    let line = |report: &str| {
        let line = report
            .lines()
            .find(|line| line.contains("2d)") || line.contains("2b)"));
        line.unwrap().split_once(") ").unwrap().1.trim().to_owned()
    };
    assert_eq!(line(&again), line(&home.good("-o2 fast_reuse.dmp.gz")));
    assert_eq!(records(&home.read("out.pcap")).1.len(), 70);
}

#[test]
fn contents_stand_at_their_place() {
    // Two segments of 3 bytes: the second arrives first, and a segment between them is missing.
    let start = u32::MAX - 1;
    let frames = [
        frame(start, 2, b""),
        frame(start.wrapping_add(7), 16, b"ghi"),
        frame(start.wrapping_add(1), 16, b"abc"),
    ];
    let home = Home::new("contents");
    home.put("x.pcap", &pcap(&frames));
    home.good("-e x.pcap");
    assert_eq!(home.read("a2b_contents.dat"), b"abc\0\0\0ghi");
    assert!(!home.has("b2a_contents.dat"));
}

#[test]
fn contents_that_lack_data_are_told_of() {
    let home = Home::new("incomplete").with("fast_reuse.dmp.gz");
    let said = home.run("-e fast_reuse.dmp.gz");
    assert_eq!(said.status, 0);
    assert!(said.err.contains("some extracted files are incomplete"));
    assert!(home.has("c2d_contents.dat"));
}

#[test]
fn round_trips_are_written_in_milliseconds() {
    let home = Home::new("rtt").with("fast_reuse.dmp.gz");
    home.good("-Z -o2 fast_reuse.dmp.gz");
    let text = home.text("c2d_rttraw.dat");
    for line in text.lines() {
        let numbers: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        assert!(numbers.len() == 2 && numbers[1] < 60_000, "{line}");
    }
    assert!(text.lines().count() > 3);
}

#[test]
fn checksums_are_verified_only_when_asked() {
    let mut octets = plain("fast_reuse.dmp.gz");
    // Changes the first packet's TTL, so that its IP checksum is wrong; the frame's Ethernet header has 14 bytes.
    octets[24 + 16 + 14 + 8] ^= 1;
    let home = Home::new("checksum");
    home.put("bad.pcap", &octets);
    assert!(home.good("bad.pcap").contains("513 TCP packets traced"));
    let said = home.run("--checksum --warn_printbadcsum bad.pcap");
    assert_eq!(said.status, 0);
    assert!(
        said.out.contains("\nbad IP checksums:  1\n"),
        "{}",
        said.out
    );
    assert!(said.out.contains(" 512 TCP packets traced"), "{}", said.out);
    assert!(
        said.err.contains("packet 1: bad IP checksum"),
        "{}",
        said.err
    );
}

#[test]
fn a_checksum_left_to_the_network_card_is_counted_and_is_no_fault() {
    let mut octets = plain("fast_reuse.dmp.gz");
    let (ip, tcp) = (24 + 16 + 14, 24 + 16 + 14 + 20);
    // The first packet's pseudo header, word by word: addresses, protocol and length (RFC 9293 3.1).
    let word = |at: usize| u32::from(u16::from_be_bytes([octets[at], octets[at + 1]]));
    let length = word(ip + 2) - 20;
    let sum: u32 = (12..20).step_by(2).map(|at| word(ip + at)).sum();
    let sum = sum + 6 + length;
    let sum = (sum & 0xffff) + (sum >> 16);
    assert_eq!((octets[ip], octets[ip + 9]), (0x45, 6));
    octets[tcp + 16..tcp + 18].copy_from_slice(&(sum as u16).to_be_bytes());
    let home = Home::new("partial");
    home.put("sender.pcap", &octets);
    let said = home.run("--checksum --warn_printbadcsum sender.pcap");
    assert!(said.out.contains(" 513 TCP packets traced"), "{}", said.out);
    assert!(said.err.contains("--checksum: 1 packets"), "{}", said.err);
    assert!(!said.err.contains("bad TCP"), "{}", said.err);
    octets[tcp + 16] ^= 1;
    home.put("sender.pcap", &octets);
    let said = home.run("--checksum --warn_printbadcsum sender.pcap");
    assert!(said.out.contains(" 512 TCP packets traced"), "{}", said.out);
    assert!(said.err.contains("packet 1: bad TCP"), "{}", said.err);
}

#[test]
fn warnings_say_which_packet() {
    let home = Home::new("warnings").with("bad_ack_code.dmp.gz");
    let said = home.run("-w bad_ack_code.dmp.gz");
    assert!(said.err.contains("hardware duplicate"), "{}", said.err);
    assert!(
        said.err.contains("headend: 40 TCP packets\n"),
        "{}",
        said.err
    );
    home.put("x.pcap", &pcap(&[frame(7, 2, b""), frame(9, 2, b"")]));
    let said = home.run("--warn_printbad_syn_fin_seq x.pcap");
    assert!(said.err.starts_with("packet 2: SYN again"), "{}", said.err);
    assert!(!said.err.contains("frames"));
}

#[test]
fn parquet_files_are_whole() {
    let home = Home::new("parquet").with("fast_reuse.dmp.gz");
    let report = home.good("--parquet out.parquet fast_reuse.dmp.gz");
    assert!(report.contains("513 TCP packets traced"));
    let octets = home.read("out.parquet");
    assert!(octets.starts_with(b"PAR1") && octets.ends_with(b"PAR1"));
}

#[test]
fn written_files_are_named_and_a_directory_that_cannot_be_made_is_refused() {
    let home = Home::new("named").with("fast_reuse.dmp.gz");
    for (flags, names) in [
        ("-S", "wrote a2b_tsg.xpl, b2a_tsg.xpl"),
        ("--html --output_dir=made/here", "wrote made/here/a2b.html"),
        ("-e --output_prefix=x-", "wrote x-b2a_contents.dat"),
    ] {
        let said = home.run(&format!("-q -o1 {flags} fast_reuse.dmp.gz"));
        assert_eq!(said.status, 0, "{}", said.err);
        assert!(
            said.err.contains(&format!("headend: {names}\n")),
            "{}",
            said.err
        );
    }
    assert!(home.has("made/here/a2b.html"));
    home.put("file", b"");
    let said = home.run("-S --output_dir=file/under fast_reuse.dmp.gz");
    assert_eq!(said.status, 1);
    let why = "--output_dir: cannot create the directory file/under";
    assert!(said.err.contains(why), "{}", said.err);
}
