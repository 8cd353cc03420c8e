use super::*;
use plot::figure::{Axis, Chart};

fn table() -> Table {
    let mut table = Table::new(
        "CPU, per tunnel",
        &[("daemon", ""), ("tunnels", ""), ("CPU", "\u{b5}s")],
    );
    table.row(["headend".into(), 10_000u64.into(), Cell::num(9.876_54, 2)]);
    table.row(["a \"peer\", too".into(), 490u64.into(), Cell::Missing]);
    table.floor(["bare loop".into(), 10_000u64.into(), Cell::num(6.5, 2)]);
    table
}

fn report() -> Report {
    let mut report = Report::new("bring up/../x", MachineInfo::read());
    report.method.push("One run.".into());
    report.tables = vec![table(), table()];
    let axis = || Axis::linear("t", "s");
    report.charts = vec![Chart::new("A chart", "", axis(), axis()).into()];
    report
}

/// A directory of this test, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("headend-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&dir);
        Self(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn text_columns_align_figures_to_the_right_and_mark_the_floor() {
    let wanted = "\
CPU, per tunnel
  daemon         tunnels  CPU (\u{b5}s)
  -------------  -------  --------
  headend         10,000      9.88
  a \"peer\", too      490         -
= bare loop       10,000      6.50
  (= is the bare loop of the same run: the floor under the others)
";
    assert_eq!(table().to_text(), wanted);
}

#[test]
fn csv_quotes_what_needs_it_and_keeps_figures_whole() {
    let wanted = "daemon,tunnels,CPU (\u{b5}s),floor\r\n\
                  headend,10000,9.87654,no\r\n\
                  \"a \"\"peer\"\", too\",490,,no\r\n\
                  bare loop,10000,6.5,yes\r\n";
    assert_eq!(table().to_csv(), wanted);
}

#[test]
fn html_escapes_and_marks_the_floor() {
    let html = table().to_html();
    assert!(html.contains("<td>a &quot;peer&quot;, too</td>"));
    assert!(html.contains("<tr class=\"floor\"><td>bare loop</td><td class=\"n\">10,000</td>"));
}

#[test]
fn a_row_shorter_than_the_headings_is_filled_up() {
    let mut table = table();
    table.row(["short".into()]);
    assert!(
        table
            .to_text()
            .contains("  short                -         -\n")
    );
    assert!(table.to_csv().ends_with("short,,,no\r\n"));
}

#[test]
fn a_report_is_written_as_json_csv_and_svg_under_names_of_its_own() {
    let scratch = Scratch::new("report");
    let written = report().write(&scratch.0.join("deep/er")).unwrap();
    let names: Vec<_> = written
        .files
        .iter()
        .map(|(_, p)| p.file_name().unwrap().to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "bring-up-x.json",
            "cpu-per-tunnel.csv",
            "cpu-per-tunnel-2.csv",
            "a-chart.svg"
        ]
    );
    assert!(written.files.iter().all(|(_, p)| p.is_file()));
    assert!(written.to_string().contains("a-chart.svg"));
}

#[test]
fn the_json_has_a_schema_version_and_unrounded_figures() {
    let scratch = Scratch::new("json");
    let written = report().write(&scratch.0).unwrap();
    let text = std::fs::read_to_string(&written.files[0].1).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["schema"], format!("bench.bring-up-x/{SCHEMA}"));
    assert_eq!(json["kind"], "headend-bench");
    assert_eq!(json["tables"][0]["rows"][0]["cells"][1], 10_000);
    assert_eq!(json["tables"][0]["rows"][0]["cells"][2], 9.876_54);
    assert!(json["tables"][0]["rows"][1]["cells"][2].is_null());
    assert_eq!(json["tables"][0]["rows"][2]["floor"], true);
    assert_eq!(json["files"][2], "a-chart.svg");
    assert!(json["machine"]["cores"].as_u64().unwrap() >= 1);
}

#[test]
fn figures_that_are_not_finite_become_null_and_blank() {
    let mut table = Table::new("t", &[("v", "")]);
    table.row([Cell::num(f64::NAN, 1)]);
    table.row([Cell::num(f64::INFINITY, 1)]);
    assert_eq!(
        serde_json::to_value(&table.rows[0].cells).unwrap(),
        serde_json::json!([null])
    );
    assert_eq!(table.to_csv(), "v\r\n\r\n\r\n");
}

#[test]
fn a_directory_that_cannot_be_made_is_named_in_the_error() {
    let scratch = Scratch::new("blocked");
    std::fs::create_dir_all(&scratch.0).unwrap();
    let file = scratch.0.join("file");
    std::fs::write(&file, "").unwrap();
    let error = report().write(&file.join("below")).unwrap_err();
    assert!(error.to_string().contains("below"), "{error}");
}

#[test]
fn file_names_cannot_leave_their_directory() {
    assert_eq!(slug("../../etc/Passwd (5)"), "etc-passwd-5");
    assert_eq!(slug("\u{e9}t\u{e9}"), "t");
    assert_eq!(slug("///"), "unnamed");
    assert!(slug(&"a-".repeat(200)).len() <= 60);
    assert_eq!(
        report().default_dir(),
        Path::new("bench-results/bring-up-x")
    );
}
