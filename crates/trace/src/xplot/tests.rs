//! What the flags do to the lines of a graph, and what the limits do.

use super::*;
use crate::graph::tests::{any_segment, segment, transfer};
use crate::{Analyzer, Config, Segment};
use proptest::prelude::*;

/// Keeps files in memory: name, octets, number of writes, and whether it has ended.
#[derive(Default)]
struct Files(Vec<(String, Vec<u8>, usize, bool)>);

impl Sink for Files {
    fn open(&mut self, name: &str) -> FileId {
        self.0.push((name.into(), Vec::new(), 0, false));
        FileId(self.0.len() as u32 - 1)
    }

    fn write(&mut self, file: FileId, octets: &[u8]) {
        let file = &mut self.0[file.0 as usize];
        assert!(!file.3, "it has ended");
        file.1.extend_from_slice(octets);
        file.2 += 1;
    }

    fn close(&mut self, file: FileId) {
        self.0[file.0 as usize].3 = true;
    }

    fn discard(&mut self, file: FileId) {
        self.0[file.0 as usize] = (String::new(), Vec::new(), 0, true);
    }
}

impl Files {
    fn text(&self, name: &str) -> String {
        let file = self.0.iter().find(|file| file.0 == name);
        let file = file.unwrap_or_else(|| panic!("there is no {name}"));
        String::from_utf8(file.1.clone()).expect("plots are text")
    }
}

fn options() -> Options {
    Options {
        graphs: Graphs::ALL,
        ..Options::default()
    }
}

fn draw(segments: &[Segment], options: Options) -> (Files, Summary) {
    let mut plots = Plots::new(options, Direct::new(Files::default()));
    let mut analyzer = Analyzer::new(Config::default());
    for segment in segments {
        analyzer.packet(segment, &[], &mut plots);
    }
    let (direct, summary) = plots.finish();
    let files = direct.into_sink();
    assert!(files.0.iter().all(|file| file.3), "every file ends");
    (files, summary)
}

#[test]
fn begins_with_axes_title_and_labels_and_ends_with_go() {
    let (files, _) = draw(&transfer(3, 9), options());
    let text = files.text("a2b_tsg.xpl");
    let head = "timeval double\ntitle\n10.0.0.1:1000_==>_10.0.0.2:80 (time sequence graph)\n\
                xlabel\ntime\nylabel\nsequence number\nwhite\norange\ndiamond 0.000000 4294962295\n";
    assert!(text.starts_with(head), "{text}");
    assert!(text.ends_with("\ngo\n"));
    let text = files.text("b2a_owin.xpl");
    assert!(text.contains("\ntitle\n10.0.0.2:80_==>_10.0.0.1:1000 (outstanding data)\n"));
    let text = files.text("a_b_tline.xpl");
    assert!(text.starts_with("unsigned dtime\n"));
    assert!(text.contains("\nrtext 60 -0.010000\nSYN 77:77(0) ack 4294962296 win 1000 \n"));
}

#[test]
fn counts_from_zero_where_asked() {
    let zero = Options {
        zero_time: true,
        zero_sequence: true,
        title: false,
        ..options()
    };
    let mut segments = transfer(3, 9);
    for segment in &mut segments {
        segment.time += 1_000_000_000_000_000_000;
        segment.clock = segment.time;
    }
    let (files, _) = draw(&segments, zero);
    let text = files.text("a2b_tsg.xpl");
    let head = "dtime signed\nxlabel\nrelative time\nylabel\nsequence offset\nwhite\norange\ndiamond 0.000000 0\n";
    assert!(text.starts_with(head), "{text}");
    assert!(text.contains("\nline 0.020000 1 0.020000 1449\n"), "{text}");
    let (files, _) = draw(&segments, options());
    assert!(
        files
            .text("a2b_tsg.xpl")
            .contains("\nline 1000000000.020000 4294962296 ")
    );
}

#[test]
fn leaves_out_what_is_not_wanted() {
    let segments = transfer(20, 5);
    let (all, _) = draw(&segments, options());
    let plain = Options {
        colour: false,
        retransmissions: false,
        instant: false,
        window_line: false,
        title_prefix: "lab".into(),
        prefix: "x-".into(),
        ..options()
    };
    let (some, _) = draw(&segments, plain);
    assert!(all.text("a2b_tsg.xpl").contains("\nR\n"));
    let text = some.text("x-a2b_tsg.xpl");
    assert!(!text.contains("\nR\n") && !text.contains("red") && !text.contains("white"));
    assert!(text.contains("\ntitle\nlab 10.0.0.1:1000_==>_"));
    assert!(all.text("a2b_tput.xpl").contains(" yellow\n"));
    let dots = |text: String| text.lines().filter(|line| line.starts_with("dot")).count();
    assert!(dots(some.text("x-a2b_tput.xpl")) < dots(all.text("a2b_tput.xpl")));
    assert!(all.text("a2b_owin.xpl").contains("\nrwin\n"));
    assert!(!some.text("x-a2b_owin.xpl").contains("rwin"));
}

#[test]
fn keeps_only_complete_connections_if_asked() {
    let complete = Options {
        complete_only: true,
        ..options()
    };
    let mut segments = transfer(3, 9);
    let (files, _) = draw(&segments, complete.clone());
    assert!(files.0.iter().all(|file| file.0.is_empty()));
    for (from_a, sequence) in [(true, u32::MAX - 4999 + 3 * 1448), (false, 78)] {
        let number = segments.len() as u64 + 1;
        segments.push(segment(number, from_a, 900_000_000, 17, sequence, 0));
    }
    let (files, _) = draw(&segments, complete);
    assert!(files.0.iter().all(|file| !file.0.is_empty()));
    assert!(files.text("b2a_tsg.xpl").contains("\nFIN\n"));
}

#[test]
fn writes_the_same_with_little_room() {
    let segments = transfer(3000, 50);
    let (files, summary) = draw(&segments, options());
    assert_eq!(summary.buffers_emptied, 0);
    assert!(
        files.0.iter().any(|file| file.2 > 5),
        "a file is written in parts"
    );
    let little = Options {
        buffers_max: 10_000,
        ..options()
    };
    let (same, summary) = draw(&segments, little);
    assert!(summary.buffers_emptied > 0);
    for file in &files.0 {
        assert!(
            files.text(&file.0) == same.text(&file.0),
            "{} differs",
            file.0
        );
    }
}

#[test]
fn leaves_out_connections_beyond_its_limit_and_counts_them() {
    let none = Options {
        connections_max: 0,
        ..options()
    };
    let (files, summary) = draw(&transfer(3, 9), none);
    assert!(files.0.is_empty());
    assert_eq!((summary.connections, summary.left_out), (0, 1));
    let other = Options {
        only: vec![2..=5],
        ..options()
    };
    let (files, summary) = draw(&transfer(3, 9), other);
    assert!(files.0.is_empty());
    assert_eq!(summary, Summary::default());
}

#[test]
fn gives_the_next_letters_after_a_closed_connection_and_a_flow() {
    let mut plots = Plots::new(options(), Direct::new(Files::default()));
    let mut analyzer = Analyzer::new(Config::default());
    let segments = transfer(3, 9);
    for segment in &segments {
        analyzer.packet(segment, &[], &mut plots);
    }
    plots.close(1);
    plots.close(1);
    plots.skip_letters();
    let mut analyzer = Analyzer::new(Config::default());
    for segment in &segments {
        let mut segment = *segment;
        segment.number += 100;
        analyzer.packet(&segment, &[], &mut plots);
    }
    let (direct, summary) = plots.finish();
    let files = direct.into_sink();
    assert_eq!(summary.connections, 2);
    assert_eq!(files.text("a2b_ssize.xpl"), files.text("e2f_ssize.xpl"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn draws_anything(
        mut segments in proptest::collection::vec(any_segment(), 0..80),
        zero_time in any::<bool>(),
        zero_sequence in any::<bool>(),
    ) {
        let mut clock = i64::MIN / 4;
        for (segment, number) in segments.iter_mut().zip(1..) {
            clock = clock.max(segment.time);
            (segment.number, segment.clock) = (number, clock);
        }
        let options = Options { zero_time, zero_sequence, rtt_marks: true, ..options() };
        let (files, _) = draw(&segments, options);
        for file in &files.0 {
            prop_assert!(file.1.is_ascii() && file.1.ends_with(b"\ngo\n"));
        }
    }
}
