use std::net::Ipv4Addr;
use std::path::Path;

use base::Duration;

use crate::{At, FAULTS_MAX, Faults, Notes, Section, document, only_sections, part, set};

/// The faults of `text` while `read` reads it.
fn faults(text: &str, read: impl Fn(&mut Section<'_>)) -> Vec<String> {
    let notes = Notes::new(text);
    if let Some(root) = document(&notes) {
        let mut section = Section::root(&root, &notes);
        read(&mut section);
        section.finish();
    }
    notes.faults().lines()
}

#[test]
fn each_fault_has_line_column_key_and_remedy() {
    let text = "a = 5\nb = \"x\"\nc = 0\nd = \"30s\"\nd_s = \"30s\"\nd_ms = \"5m\"\ne = []\nf = [1, 1, 9]\ng = \"lift\"\n\
                h = \"\"\ni = \"10.0.0\"\nj = [20, 10]\nk = true\n";
    let found = faults(text, |section| {
        section.string("a");
        section.flag("b");
        section.integer("c", 1..=9, "hops");
        section.seconds("d", 0.0..=9.0);
        section.seconds("d_s", 0.0..=9.0);
        section.milliseconds("d_ms", 0.0..=9.0);
        section.strings("e");
        section.integers("f", 1..=5);
        section.choice("g", &[("left", 1), ("right", 2)]);
        section.sized("h", 1..=15);
        section.from_text::<Ipv4Addr>("i", "an IPv4 address", "192.0.2.1");
        section.pair("j", 0.0..=99.0);
        section.several("k", |text| text.parse::<u8>().map_err(|_| "no byte"));
        section.require("l", "write l = 1");
    });
    assert_eq!(
        found,
        [
            "1:1: l: is missing; write l = 1",
            "1:5: a: is an integer; it must be a string in quotes",
            "2:5: b: is a string; it must be true or false",
            "3:5: c: 0 is out of range; it must be 1 to 9 hops",
            "4:5: d: is a string; it must be a number of seconds, without quotes or unit",
            "5:7: d_s: is a string; it must be a number of seconds, without quotes or unit: d_s = 30",
            "6:8: d_ms: is a string; it must be a number of milliseconds, without quotes or unit",
            "7:5: e: is an empty list; give at least one, or leave the key out",
            "8:9: f: 1 is given twice; once is enough",
            "8:12: f: 9 is out of range; it must be 1 to 5",
            "9:5: g: \"lift\" is not known; did you mean \"left\"?",
            "10:5: h: is empty; it must have 1 to 15 bytes",
            "11:5: i: \"10.0.0\" is not an IPv4 address; write it as i = \"192.0.2.1\"",
            "12:5: j: 20 is above 10; write the lower one first",
            "13:5: k: is true or false; it must be a string in quotes, a number, or a list of them",
        ]
    );
}

#[test]
fn values_are_read() {
    let text = "a = \"x\"\nb = 0x1f\nc = 1.5\nd = [\"1\", \"2\"]\ne = 7\nf = [3, 4]\n";
    let found = faults(text, |section| {
        assert_eq!(section.sized("a", 1..=1).map(|a| a.value), Some("x"));
        let hexadecimal = |text: &str| Ok::<_, String>(text.to_owned());
        let text = section.written("b", hexadecimal).map(|b| b.value);
        assert_eq!(text.as_deref(), Some("0x1f"));
        let mut time = Duration::ZERO;
        set(section.milliseconds("c", 0.0..=2.0), &mut time);
        assert_eq!(time, Duration::from_micros(1_500));
        let number = |text: &str| text.parse::<u8>().map_err(|_| "no byte");
        let values = |list: Vec<At<u8>>| list.into_iter().map(|at| at.value).collect::<Vec<_>>();
        assert_eq!(values(section.list("d", "1", number)), [1, 2]);
        assert_eq!(values(section.several("e", number)), [7]);
        assert_eq!(
            section.pair("f", 0.0..=9.0).map(|f| f.value),
            Some((3.0, 4.0))
        );
    });
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn unknown_keys_and_sections_are_reported_with_the_one_that_was_meant() {
    let found = faults("hold_ms = 1\ncolour = 1\n[lnk]\n", |section| {
        section.seconds("hold_s", 0.0..=1.0);
        section.known("link");
    });
    assert_eq!(
        found,
        [
            "1:1: hold_ms: unknown key; did you mean hold_s? It takes seconds",
            "2:1: colour: unknown key; known here: hold_s, link",
            "3:2: lnk: unknown section; did you mean link?",
        ]
    );
    let notes = Notes::new("a = 1\n[lnk]\n");
    let root = document(&notes).expect("TOML");
    only_sections(&root, 0, &["link", "shape"], &notes);
    assert_eq!(
        notes.faults().lines(),
        [
            "1:1: a: is outside of a section; write it below its section, which is one of link, shape",
            "2:2: lnk: unknown section; did you mean link?",
        ]
    );
}

#[test]
fn sections_that_are_none_are_faults_and_those_of_a_list_have_numbers() {
    let notes = Notes::new("link = 5\nfirst = [7]\n[[class]]\n[[class]]\nrate = 5\n");
    let root = document(&notes).expect("TOML");
    assert!(!Section::open(&root, "link", &notes).is_given());
    assert!(Section::each(&root, "first", "first", &notes).is_empty());
    for section in Section::each(&root, "class", "class", &notes) {
        section.finish();
    }
    assert_eq!(
        notes.faults().lines(),
        [
            "1:8: link: is an integer; write it as a section: [link]",
            "2:10: first: is an integer; write each as a section of its own: [[first]]",
            "5:1: class[2].rate: unknown key; no key is known here",
        ]
    );
}

#[test]
fn a_part_has_the_places_and_the_numbers_of_the_whole() {
    let text = "[[user]]\n[[user]]\nnmae = 1\n[[user]]\nname = x\n";
    let notes = Notes::with_secrets(text);
    let second = text.find("[[user]]\nnmae").expect("it is there");
    let third = text.find("[[user]]\nname").expect("it is there");
    let root = part(&notes, second..third, 1).expect("TOML");
    for mut section in Section::each_of_part(&root, ("user", "user"), (second, 1), &notes) {
        section.string("name");
        section.finish();
    }
    assert!(part(&notes, third..text.len(), 2).is_none());
    assert_eq!(
        notes.faults().lines(),
        [
            "3:1: user[2].nmae: unknown key; did you mean name?",
            "5:8: user[3].name: is neither a number nor true nor false, and text stands in quotes; write name = \"TEXT\"",
        ]
    );
}

#[test]
fn a_hundred_faults_are_kept_and_the_others_counted() {
    let text: String = (0..1_000).map(|n| format!("key{n} = 1\n")).collect();
    let notes = Notes::new(&text);
    let root = document(&notes).expect("TOML");
    Section::root(&root, &notes).finish();
    assert_eq!(notes.len(), 1_000);
    let faults = notes.faults().of(Path::new("f.toml"));
    assert_eq!((faults.iter().count(), faults.len()), (FAULTS_MAX, 1_000));
    let lines = faults.lines();
    assert_eq!(lines[100], "f.toml: and 900 more");
    assert!(lines[0].starts_with("f.toml:1:1: key0: "), "{}", lines[0]);
}

#[test]
fn a_fault_that_is_noted_twice_is_kept_once_and_columns_count_characters() {
    let notes = Notes::new("é = 1\nü = \"é\" x");
    notes.at(7, "a", "wrong; right");
    notes.at(7, "a", "wrong; right");
    notes.at(16, "b", ("wrong", ""));
    notes.at(999, "c", "beyond");
    notes.whole("d", "missing");
    notes.advise(0, "e", "not wise; leave it out");
    assert_eq!(notes.line(7), 2);
    let advice = Notes::new("");
    advice.advise(0, "e", "not wise; leave it out");
    let (_, advice) = advice.finish(Some(())).expect("no fault");
    assert_eq!(
        advice.to_string(),
        "1:1: e: not wise; leave it out (advice)"
    );
    assert_eq!(
        notes.faults().of(Path::new("f")).lines(),
        [
            "f: d: missing",
            "f:2:1: a: wrong; right",
            "f:2:8: b: wrong",
            "f:2:10: c: beyond"
        ]
    );
}

#[test]
fn files_that_cannot_be_read_are_faults() {
    let missing = Path::new("/nonexistent/f.toml");
    let told = crate::text_of(missing)
        .expect_err("no such file")
        .to_string();
    assert_eq!(
        told,
        "/nonexistent/f.toml: cannot be read: No such file or directory (os error 2)"
    );
    let wrong = crate::utf8(Path::new("f"), b"a = 1\nb = \"\xff\"").expect_err("no text");
    assert_eq!(wrong.to_string(), "f:2:6: is not UTF-8 text from here on");
    assert!(Faults::default().is_empty());
}

#[test]
fn a_list_within_a_section_has_numbers_and_places() {
    let text =
        "[[a]]\n[[a.b]]\nc = \"x\"\nd = [1, 12]\n[[a.b]]\nc = [\"x\", \"y\"]\nd = []\nextra = 1\n";
    let notes = Notes::new(text);
    let root = document(&notes).expect("no fault of syntax");
    let mut outer = Section::each(&root, "a", "a", &notes).remove(0);
    let inner = outer.tables("b");
    assert_eq!(inner.len(), 2);
    outer.finish();
    let mut values = Vec::new();
    for mut section in inner {
        let no_y = |text: &str| match text {
            "y" => Err("y is no x; write x"),
            other => Ok(other.to_owned()),
        };
        let texts = section.one_or_more("c", no_y).expect("given");
        let numbers = section.one_or_more_integers("d", 1..=9).expect("given");
        assert!(section.one_or_more_integers("f", 1..=9).is_none());
        values.push((texts.len(), numbers.len()));
        if let Some(at) = section.place_in("c", "y") {
            section.fault(at, "c", "a second one");
        }
        section.finish();
    }
    assert_eq!(values, [(1, 1), (1, 0)]);
    assert_eq!(
        notes.faults().lines(),
        [
            "3:5: a[1].b[1].c: a second one",
            "4:9: a[1].b[1].d: 12 is out of range; it must be 1 to 9",
            "6:11: a[1].b[2].c: y is no x; write x",
            "6:11: a[1].b[2].c: a second one",
            "8:1: a[1].b[2].extra: unknown key; known here: c, d, f",
        ]
    );
}

#[test]
fn faults_of_a_named_file_count_with_those_that_were_not_kept() {
    let inner = Notes::new("");
    for number in 0..FAULTS_MAX + 7 {
        inner.whole(number.to_string(), "wrong");
    }
    let inner = inner.faults().of(Path::new("users"));
    let outer = Notes::new("file = 1");
    outer.at(0, "mtu", "wrong");
    outer.of_file(7, "file", &inner);
    let faults = outer.faults().of(Path::new("f"));
    assert_eq!(faults.len(), FAULTS_MAX + 8);
    let lines = faults.lines();
    assert_eq!(lines[1], "f:1:8: file: users: 0: wrong");
    assert_eq!(lines[FAULTS_MAX], "f: and 8 more");
}

// long: one file, read three times
#[test]
fn two_readings_differ_in_the_keys_whose_values_do() {
    let record = |text: &str, roas: &[u8]| {
        let notes = Notes::new(text).recording();
        let root = document(&notes).expect("no fault of syntax");
        crate::only_sections(&root, 0, &["a", "peer"], &notes);
        let mut a = Section::open(&root, "a", &notes);
        a.integer("n", 0..=9, "");
        a.number("f", 0.0..=9.0, "");
        a.strings_or_none("list");
        a.string("file");
        a.content("file", roas);
        crate::secret::optional(&mut a, Path::new("f"));
        a.finish();
        for mut peer in Section::each(&root, "peer", "peer", &notes) {
            peer.string("name");
            for mut term in peer.tables("term") {
                term.integer("n", 0..=9, "");
                term.finish();
            }
            peer.finish();
        }
        let record = notes.recorded();
        assert_eq!(notes.faults().to_string(), "");
        record
    };
    let before = record(
        "[a]\nn = 0x1\nf = 2.0\nlist = [\"x\"]\nsecret = \"old\"\nfile = \"r\"\n\
         [[peer]]\nname = \"p\"\n[[peer.term]]\nn = 1\n",
        b"one",
    );
    let same = record(
        "[[peer]]\nname = 'p'\n[[peer.term]]\nn = 1\n\
         [a]\nfile = \"r\"\nf = 2\nn = 1\nlist = [ # a comment\n \"x\"\n]\nsecret = \"old\"\n",
        b"one",
    );
    assert_eq!(before.differences(&same), []);
    let after = record(
        "[a]\nlist = [\"x\", \"y, z\"]\nn = 1\nf = 2.5\nfile = \"r\"\nsecret = \"new\"\n\
         [[peer]]\nname = \"q\"\n[[peer]]\nname = \"p\"\n[[peer.term]]\nn = 2\n",
        b"two",
    );
    let differences = before.differences(&after);
    let text = |value: &Option<crate::Value>| value.as_ref().map(ToString::to_string);
    let told: Vec<String> = differences
        .iter()
        .map(|one| {
            let [old, new] = [&one.old, &one.new].map(|value| text(value).unwrap_or("-".into()));
            let hidden = if one.is_hidden() { " (hidden)" } else { "" };
            format!(
                "{} of {}: {old} -> {new}{hidden}",
                one.key,
                one.key.section()
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "peer of : [p] -> [q, p]",
            "a.f of a: 2 -> 2.5",
            "a.file of a: r -> r (hidden)",
            "a.list of a: [x] -> [x, \"y, z\"]",
            "a.secret of a: (secret) -> (secret) (hidden)",
            "peer[p].term[1].n of peer.term: 1 -> 2",
            "peer[q].name of peer: - -> q",
        ]
    );
    let shown = format!("{before:?} {after:?}");
    assert!(
        !shown.contains("\"old\"") && !shown.contains("\"new\""),
        "{shown}"
    );
    let asked: Vec<_> = after
        .asked()
        .filter(|(section, _)| *section == "peer")
        .collect();
    assert_eq!(asked, [("peer", "name"), ("peer", "term")]);
}
