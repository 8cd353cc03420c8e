//! Tests plots of a run and of several files, and rejected plots.

use std::fs;
use std::process::{Command, Stdio};

use crate::peer::{Peer, When};
use crate::support::{Directory, HEADEND, json, ping, ping_ok, read_lines};
use crate::udp::terminate;

/// Answers all but every fifth packet.
fn peer() -> Peer {
    Peer::new(|number| match number % 5 {
        0 => vec![],
        _ => vec![When::Now],
    })
}

/// Asserts that the pictures over time, by number, of each packet, and of the distribution are labelled.
fn assert_pictures_have_their_words([time, line, scatter, cdf]: &[String; 4]) {
    for (file, words) in [
        (
            time,
            [
                "time since the start (s)",
                "round-trip time (ms)",
                "20 % lost",
            ],
        ),
        (
            line,
            ["number of the packet", "packet by packet", "20 % lost"],
        ),
        (
            scatter,
            ["time since the start (s)", "each packet a dot", "20 % lost"],
        ),
        (
            cdf,
            [
                "round-trip time (ms",
                "how they are distributed",
                "share of",
            ],
        ),
    ] {
        let svg = fs::read_to_string(file).unwrap();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("Round-trip times to 127.0.0.1"));
        assert!(svg.contains("a &lt;quick&gt; &amp; dirty stream"), "{svg}");
        for word in words {
            assert!(svg.contains(word), "{word} in {svg}");
        }
    }
}

#[test]
fn a_run_is_drawn_in_each_way_and_format() {
    let peer = peer();
    let directory = Directory::new();
    let names = [
        "a.svg", "l.svg", "s.svg", "c.svg", "a.png", "a.html", "c.html",
    ];
    let [all @ .., page, cdf_page] = names.map(|name| directory.path(name));
    let kinds = ["", "line=", "scatter=", "cdf=", ""];
    let mut args: Vec<String> = ["-q", "-c", "20", "-i", "0.005", "-W", "0.2", "-s", "48"]
        .map(str::to_owned)
        .into();
    for (kind, file) in kinds.iter().zip(&all) {
        args.push(format!("--plot={kind}{file}"));
    }
    args.push(format!("--plot={page}"));
    args.push(format!("--plot=cdf={cdf_page}"));
    args.push(format!("--udp={}", peer.port()));
    args.extend([
        "127.0.0.1,name=a <quick> & dirty stream".to_owned(),
        "127.0.0.1".into(),
    ]);
    ping_ok(0, &args.iter().map(String::as_str).collect::<Vec<_>>());
    peer.end();
    assert_eq!(
        directory.names().len(),
        names.len(),
        "{:?}",
        directory.names()
    );

    let read = |path: &String| fs::read_to_string(path).unwrap();
    let [pictures @ .., png] = &all;
    assert_pictures_have_their_words(pictures);
    assert!(fs::read(png).unwrap().starts_with(b"\x89PNG\r\n\x1a\n"));
    let charts = |page: &str| page.matches("<section class=\"chart\"").count();
    let (page, cdf_page) = (read(&page), read(&cdf_page));
    // Four kinds of round-trip chart, one chart per direction, and the send delay.
    assert_eq!((charts(&page), charts(&cdf_page)), (6, 1));
    for word in [
        "Delay each way",
        "How late packets were sent",
        "What became of every packet",
    ] {
        assert!(page.contains(word), "{word}");
    }
    for other in ["src=\"http", "href=\"http", "url(http", "@import"] {
        assert!(!page.contains(other), "{other}: it needs nothing else");
    }
}

#[test]
fn files_are_drawn_over_each_other_under_names_that_tell_them_apart() {
    let peer = peer();
    let directory = Directory::new();
    let files = ["before.json", "after.json.zst"].map(|name| directory.path(name));
    for file in &files {
        let args = [
            "-q", "-c", "6", "-i", "0.005", "-W", "0.1", "-Q", "ef,be", "-s", "48",
        ];
        let more = ["-o", file, "--udp", &peer.port(), "127.0.0.1"];
        ping_ok(0, &[&args[..], &more].concat());
    }
    peer.end();
    let [svg, page] = ["all.svg", "all.html"].map(|name| directory.path(name));
    let (svg_plot, page_plot) = (format!("cdf={svg}"), format!("--plot={page}"));
    let [before, after] = files.each_ref().map(String::as_str);
    let table = ping_ok(0, &["show", before, after, "--plot", &svg_plot, &page_plot]);
    assert_eq!(table.lines().count(), 6);
    for path in [svg, page] {
        let text = fs::read_to_string(path).unwrap();
        for file in ["before", "after"] {
            for class in ["DSCP EF", "best effort"] {
                let name = format!("{file}: 127.0.0.1, {class}");
                assert!(text.contains(&name), "{name} in {text}");
            }
        }
    }
    let bad = directory.path("bad.json");
    fs::write(&bad, "{").unwrap();
    let never = directory.path("never.svg");
    let found = ping(&["show", before, &bad, "--plot", &never]);
    assert_eq!(found.status.code(), Some(2));
    assert!(!directory.names().iter().any(|name| name.contains("never")));
}

#[test]
fn what_cannot_be_drawn_is_refused_before_anything_is_sent() {
    let peer = peer();
    let directory = Directory::new();
    let twice = directory.path("a.svg");
    let both = format!("cdf={twice}");
    let inside = directory.path("none/a.svg");
    for (plots, why) in [
        (&["pie=a.svg"][..], "no kind \"pie\""),
        (&["a.jpg"], "ends in .svg, .png or .html"),
        (&[&*twice, "a.pdf"], "a.pdf"),
        (&[&*twice, &*both], "is to be written twice"),
        (&[&*inside], "cannot write "),
    ] {
        let mut args = vec!["-c", "2", "-i", "0.01", "-W", "0.1", "-s", "48"];
        let port = peer.port();
        args.extend(["--udp", &port, "127.0.0.1"]);
        plots.iter().for_each(|plot| args.extend(["--plot", plot]));
        let found = ping(&args);
        let errors = String::from_utf8(found.stderr).unwrap();
        assert_eq!(found.status.code(), Some(2), "{errors}");
        assert!(
            errors.contains(why) && errors.lines().count() == 1,
            "{errors}"
        );
    }
    assert_eq!(peer.end(), [0; 0], "nothing was sent");
    assert!(directory.names().is_empty());
}

#[test]
fn a_signal_ends_the_run_with_its_plots() {
    let peer = peer();
    let directory = Directory::new();
    let (file, page) = (directory.path("out.json"), directory.path("out.html"));
    let args = [
        "-i", "0.01", "-W", "0.1", "-s", "48", "-o", &file, "--plot", &page,
    ];
    let mut command = Command::new(HEADEND);
    command.arg("ping").args(args);
    command.args(["--udp", &peer.port(), "127.0.0.1"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let rest = read_lines(&mut child, 10);
    terminate(&child);
    rest.for_each(drop);
    assert!(child.wait().unwrap().success());
    peer.end();
    assert_eq!(json(&file)["interrupted"], true);
    assert!(fs::read_to_string(&page).unwrap().ends_with("</html>\n"));
    assert_eq!(directory.names().len(), 2, "{:?}", directory.names());
}
