//! What holds for any text that is read as a scenario; fuzz targets check the same.

use sojourn_scenario::Scenario;

/// Checks that `text` is refused in one line, or read as a scenario that survives being written; returns
/// whether it was read.
pub(crate) fn check_text(text: &str) -> bool {
    match Scenario::from_toml(text) {
        Ok(scenario) => {
            let as_toml = Scenario::from_toml(&scenario.to_toml());
            assert!(as_toml.is_ok_and(|again| again == scenario), "TOML: {text}");
            let as_json = Scenario::from_json(scenario.to_json());
            assert!(as_json.is_ok_and(|again| again == scenario), "JSON: {text}");
            true
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains('\n'), "{message:?}: {text}");
            false
        }
    }
}
