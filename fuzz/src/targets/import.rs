//! `headend import`: any bytes are read, and every line that says something is in the report.

use tool_import::{Files, Import};

/// Splits the data at bytes of 1 into the files that xl2tpd reads.
///
/// # Panics
/// If a line of xl2tpd.conf or of the options is not in the report.
pub fn target_xl2tpd(data: &[u8]) {
    let names = [
        "xl2tpd.conf",
        "o",
        "chap-secrets",
        "pap-secrets",
        "l2tp-secrets",
    ];
    let parts = data.split(|byte| *byte == 1);
    let files: Vec<(&str, &[u8])> = names.into_iter().zip(parts).collect();
    let import = tool_import::xl2tpd::read(&mut Files::of(&files));
    let main = files.first().map_or(&[][..], |(_, main)| main);
    every_line_is_reported(main, &import, "xl2tpd.conf", b";#");
    // A backslash joins lines, and then the first of them is reported.
    if let Some((name, options)) = files.get(1)
        && !options.contains(&b'\\')
    {
        every_line_is_reported(options, &import, name, b"#");
    }
}

/// Splits the data at bytes of 1 into the files that l2tpns reads.
///
/// # Panics
/// If a line of startup-config is not in the report.
pub fn target_l2tpns(data: &[u8]) {
    let names = ["startup-config", "ip_pool", "users"];
    let parts = data.split(|byte| *byte == 1);
    let files: Vec<(&str, &[u8])> = names.into_iter().zip(parts).collect();
    let import = tool_import::l2tpns::read(&mut Files::of(&files));
    let main = files.first().map_or(&[][..], |(_, main)| main);
    every_line_is_reported(main, &import, "startup-config", b"!#");
}

/// Splits the data at bytes of 1 into the files that accel-ppp reads.
///
/// # Panics
/// If a line of accel-ppp.conf is not in the report.
pub fn target_accel(data: &[u8]) {
    let names = ["accel-ppp.conf", "chap-secrets"];
    let parts = data.split(|byte| *byte == 1);
    let files: Vec<(&str, &[u8])> = names.into_iter().zip(parts).collect();
    let import = tool_import::accel::read(&mut Files::of(&files));
    let main = files.first().map_or(&[][..], |(_, main)| main);
    every_line_is_reported(main, &import, "accel-ppp.conf", b"#");
}

/// Reads the data as FRR's configuration.
///
/// # Panics
/// If a line is not in the report.
pub fn target_frr(data: &[u8]) {
    let import = tool_import::frr::read(&mut Files::of(&[("frr.conf", data)]));
    every_line_is_reported(data, &import, "frr.conf", b"!#");
}

/// Reads the data as BIRD's configuration.
///
/// # Panics
/// If the file has words and the report has no line.
pub fn target_bird(data: &[u8]) {
    let import = tool_import::bird::read(&mut Files::of(&[("bird.conf", data)]));
    let has_words = data.iter().any(u8::is_ascii_alphanumeric);
    let has_comments = data.contains(&b'#') || data.contains(&b'*');
    assert!(!has_words || has_comments || !import.report.lines().is_empty());
}

/// Reads the data as GoBGP's configuration, in TOML or YAML.
///
/// # Panics
/// If a line of the report lies outside the file.
pub fn target_gobgp(data: &[u8]) {
    let import = tool_import::gobgp::read(&mut Files::of(&[("gobgpd.conf", data)]));
    let lines = data.split(|byte| *byte == b'\n').count();
    let mut all = import.report.lines().iter();
    assert!(all.all(|line| (1..=lines).contains(&line.place.line)));
}

/// Reads the data as OpenWrt's `/etc/config/sqm`.
///
/// # Panics
/// If an option is not in the report, or the policy does not pass the check.
pub fn target_sqm(data: &[u8]) {
    let source = tool_qos::import::Source::new("sqm", data, b"#");
    let selected = data.first().is_some_and(|byte| *byte == b'#');
    judge(tool_qos::import::sqm::read(
        &[source],
        selected.then_some("eth1"),
    ));
}

/// Splits the data at a byte of 1 into what tc printed of two interfaces.
///
/// # Panics
/// If an option is not in the report, or the policy does not pass the check.
pub fn target_tc(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == 1);
    let [up, down] = ["up", "down"].map(|name| {
        let bytes = parts.next().unwrap_or_default();
        [tool_qos::import::Source::new(name, bytes, b"#")]
    });
    judge(tool_qos::import::tc::read(&up, &down, None));
}

/// Checks that each option has a fate, and that the result is a policy.
fn judge(mut import: tool_qos::import::Import) {
    assert_eq!(import.report.lines().len(), import.options);
    let text = import.finish().expect("a policy");
    assert!(qos::policy::Policy::parse(&text).is_ok(), "{text}");
}

/// Checks that each line of the first file is in the report, unless it is empty or starts with a comment.
fn every_line_is_reported(main: &[u8], import: &Import, name: &str, comments: &[u8]) {
    for (number, line) in (1..).zip(main.split(|byte| *byte == b'\n')) {
        let text = String::from_utf8_lossy(line);
        let text = text.trim();
        if text.is_empty() || comments.contains(&text.as_bytes()[0]) {
            continue;
        }
        let mut lines = import.report.lines().iter();
        let is_there = lines.any(|line| &*line.place.file == name && line.place.line == number);
        assert!(is_there, "line {number}: {}", text.escape_debug());
    }
}
