//! Ways: a direction, or paths of links.

use super::block::{Direction, Way};
use crate::error::ScenarioError;
use crate::link::Link;
use crate::place::{Fields, Place, choice};

pub(super) fn way(
    place: &Place<'_>,
    fields: &Fields<'_>,
    links: &[Link],
) -> Result<Way, ScenarioError> {
    let names: Vec<_> = links.iter().map(|l| l.name.as_str()).collect();
    match (
        fields.get("direction"),
        fields.get("path"),
        fields.get("return"),
    ) {
        (Some(direction), None, None) => {
            let chosen = match choice(&direction, "direction", &Direction::NAMES)? {
                0 => Direction::Up,
                _ => Direction::Down,
            };
            if Direction::NAMES.iter().all(|name| !names.contains(name)) {
                return Err(direction.fail(format!(
                    "there is no link \"up\" or \"down\" to pass; links are {}; use path",
                    names.join(", ")
                )));
            }
            Ok(Way::Direction(chosen))
        }
        (None, Some(path), back) => Ok(Way::Path {
            path: path_of(&path, &names)?,
            back: back.map_or(Ok(Vec::new()), |back| path_of(&back, &names))?,
        }),
        (None, None, _) => {
            let rule = "\"direction\" is missing; give it, such as direction = \"up\", or path";
            Err(place.fail(rule))
        }
        (Some(direction), ..) => {
            Err(direction.fail("either a direction or a path with its return is given, not both"))
        }
    }
}

fn path_of(place: &Place<'_>, links: &[&str]) -> Result<Vec<String>, ScenarioError> {
    const MOST_HOPS: usize = 254;
    let hops = place.list()?;
    if hops.len() > MOST_HOPS {
        return Err(place.fail(format!("a path passes at most {MOST_HOPS} links")));
    }
    hops.iter()
        .map(|hop| {
            let name = hop.text()?;
            if links.contains(&name) {
                return Ok(name.to_owned());
            }
            let links = links.join(", ");
            // The path of the error is the key's: the name says which hop it is.
            Err(place.fail(format!("there is no link \"{name}\"; links are {links}")))
        })
        .collect()
}
