//! Tests that a fault is reported in one line with exit status 2, and that no file is left behind.

use crate::support::{Directory, ping};

// long: a table of cases
#[test]
fn every_fault_is_one_line_and_status_2() {
    let directory = Directory::new();
    let output = directory.path("out.json");
    let streams = directory.path("streams.toml");
    std::fs::write(
        &streams,
        "[[stream]]\nhost = \"127.0.0.1\"\ntos = \"gold\"\n",
    )
    .unwrap();
    for (args, why) in [
        (&["nonesuch.invalid"][..], "nonesuch.invalid: "),
        (&["-6", "127.0.0.1"], "127.0.0.1: "),
        (&["-Q", "256", "127.0.0.1"], "TOS 256 is impossible"),
        (&["-Q", "gold", "127.0.0.1"], "no TOS \"gold\""),
        (&["127.0.0.1,dscp=64"], "no DSCP \"64\""),
        (&["127.0.0.1,colour=3"], "no such key"),
        (
            &["-f", &streams],
            "streams.toml:3:7: stream[1].tos: no TOS \"gold\"",
        ),
        (&["-f", &directory.path("none")], "none: cannot be read: "),
        (&["-i", "0", "127.0.0.1"], "interval"),
        (
            &["-i", "0.000001", "127.0.0.1"],
            "1000000 packets a second in all: at most 100000",
        ),
        (
            &["-i", "x", "127.0.0.1"],
            "-i: \"x\" is no number of seconds",
        ),
        (&["-s", "65508", "127.0.0.1"], "the size is 0 to 65507"),
        (
            &["--udp", "9", "-s", "20", "127.0.0.1"],
            "the size is 48 to 65507",
        ),
        (&["-c", "0", "127.0.0.1"], "a count is at least 1"),
        (&["-W", "601", "127.0.0.1"], "at most 600 s"),
        (&[], "no stream: name a host"),
        (
            &["-I", "nonesuch0", "--udp", "9", "127.0.0.1"],
            "no interface nonesuch0",
        ),
        (
            &["-I", "192.0.2.99", "--udp", "9", "127.0.0.1"],
            "192.0.2.99 is no address of this host",
        ),
        (
            &["-o", "/nonesuch/file", "127.0.0.1"],
            "cannot write /nonesuch/file",
        ),
        (&["--responder", "0"], "write PORT"),
        (
            &["--responder", "192.0.2.99:7"],
            "cannot listen on 192.0.2.99:7",
        ),
        (&["show", "/nonesuch/file"], "cannot read /nonesuch/file"),
    ] {
        let mut all = args.to_vec();
        if !args.contains(&"-o") && args.first() != Some(&"show") && !args.contains(&"--responder")
        {
            all.extend(["-o", &output]);
        }
        let found = ping(&all);
        let errors = String::from_utf8(found.stderr).unwrap();
        assert_eq!(found.status.code(), Some(2), "{args:?}: {errors}");
        assert!(
            errors.starts_with("headend ping: ") && errors.contains(why),
            "{args:?}: {errors}"
        );
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(found.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(directory.names(), ["streams.toml"]);
}
