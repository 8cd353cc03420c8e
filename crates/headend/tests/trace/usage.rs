//! Tests wrong command lines and the help text.

use crate::home::Home;

#[test]
fn wrong_command_lines_end_with_2_and_say_why() {
    let home = Home::new("usage").with("reno.epeek.gz");
    for (line, why) in [
        ("-l", "name at least one file"),
        ("-K reno.epeek.gz", "-K is not a flag"),
        ("--show reno.epeek.gz", "may mean --showsacks"),
        (
            "-fsegs>x reno.epeek.gz",
            "column 6: no variable is called 'x'",
        ),
        ("-fsegs> reno.epeek.gz", "column 6: something is missing"),
        ("-B9 -E3 reno.epeek.gz", "-B9 begins after -E3 ends"),
        ("--csv --tsv -l reno.epeek.gz", "choose one of"),
        ("--json --csv reno.epeek.gz", "choose --json"),
        (
            "-S --part 0/2 reno.epeek.gz",
            "graphs cannot be combined with --part",
        ),
        (
            "-e --merge reno.epeek.gz",
            "-e cannot be combined with --merge",
        ),
        ("--part 2/2 reno.epeek.gz", "not a part"),
        ("- stdin", "read only once"),
        ("-xtraffic reno.epeek.gz", "modules"),
        ("-oreno.list reno.epeek.gz", "cannot read reno.list"),
        ("--live lo reno.epeek.gz", "files cannot be combined with"),
        ("--live lo --every 1s", "--every without why cannot be"),
        ("--ring 8M reno.epeek.gz", "--ring needs --live"),
        ("twin --live lo", "--live cannot be combined with twin"),
    ] {
        let said = home.run(line);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{line}");
        assert!(said.err.contains(why), "{line}: {}", said.err);
    }
}

#[test]
fn the_arrow_stands_under_the_fault() {
    let home = Home::new("arrow").with("reno.epeek.gz");
    let said = home.run("-fsegs>x reno.epeek.gz");
    assert!(said.err.ends_with("  segs>x\n       ^\n"), "{}", said.err);
}

#[test]
fn help_is_on_standard_output() {
    let home = Home::new("help");
    for (line, part) in [
        ("--help", "Usage: headend trace"),
        ("-h", "Usage: headend trace"),
        ("-hargs", "Accepted for compatibility with tcptrace"),
        ("-hfilter", "rexmit_segs"),
        ("-houtput", "a2b"),
        ("-hhints", "headend trace -l FILE"),
        ("-hconfig", "EtherPeek"),
        (
            "--version",
            concat!("headend trace ", env!("CARGO_PKG_VERSION")),
        ),
        ("-v", "headend trace"),
    ] {
        assert!(home.good(line).contains(part), "{line}");
    }
}

#[test]
fn settings_of_tcptraces_in_the_environment_are_not_read() {
    let home = Home::new("environment").with("reno.epeek.gz");
    home.put(".tcptracerc", b"-l");
    let mut command = home.command("reno.epeek.gz");
    let output = command
        .env("TCPTRACEOPTS", "-l")
        .env("HOME", &home.0)
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(output.stdout).unwrap(),
        home.good("reno.epeek.gz")
    );
}
