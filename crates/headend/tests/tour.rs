//! `headend tour --quick`: the page, the picture and the numbers.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// A directory of one test, removed at its end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_quick_tour_writes_one_page_and_one_picture_with_three_numbers() {
    let name = format!("headend-tour-test-{}", std::process::id());
    let scratch = Scratch(std::env::temp_dir().join(name));
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headend"));
        command.args(["tour", "--quick", "--json", "--out"]);
        command.arg(&scratch.0).output().unwrap()
    };
    let output = run();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert!(
        errors.contains("tour: 1 of 3: 1,000 subscribers connect"),
        "{errors}"
    );
    let row: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(row["schema"], "tour/1");
    let numbers = row["numbers"].as_array().unwrap();
    assert_eq!(numbers.len(), 3);
    assert!(
        numbers.iter().all(|number| number["missing"].is_null()),
        "{row}"
    );
    let page = fs::read_to_string(scratch.0.join("tour.html")).unwrap();
    for number in numbers {
        assert!(
            page.contains(number["number"].as_str().unwrap()),
            "{number}"
        );
    }
    assert_eq!(page.matches("<section class=\"chart\"").count(), 3);
    if cfg!(feature = "png") {
        let picture = fs::read(scratch.0.join("tour.png")).unwrap();
        assert!(picture.starts_with(b"\x89PNG"));
        assert_eq!(&picture[16..24], [0, 0, 4, 176, 0, 0, 2, 118]);
    }
    // A page that no tour wrote is refused before anything is measured.
    fs::write(scratch.0.join("tour.html"), "<p>mine</p>").unwrap();
    let output = run();
    assert_eq!(output.status.code(), Some(1));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        errors.contains("no tour wrote it") && !errors.contains("1 of 3"),
        "{errors}"
    );
}
