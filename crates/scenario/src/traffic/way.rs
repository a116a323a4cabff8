//! Paths of traffic: a direction, or lists of links.

use super::block::{Direction, Way};
use crate::error::ScenarioError;
use crate::link::{Links, UNLIMITED};
use crate::place::{Fields, Place};

pub(super) fn way(
    place: &Place<'_>,
    fields: &Fields<'_>,
    links: &Links,
) -> Result<Way, ScenarioError> {
    let names = links.names();
    match (
        fields.get("direction"),
        fields.get("path"),
        fields.get("return"),
    ) {
        (Some(direction), None, None) => {
            let chosen = direction.one_of("direction", &Direction::ALL)?;
            if Direction::NAMES.iter().all(|name| !names.contains(name)) {
                return Err(direction.fail(format!(
                    "no link is named \"up\" or \"down\"; set path to a list of links (defined links: {})",
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
            let rule = "missing direction; set direction = \"up\" or \"down\", or set path";
            Err(place.fail(rule))
        }
        (Some(direction), ..) => Err(direction.fail(
            "cannot be combined with path or return; set either direction, or path and optionally return",
        )),
    }
}

/// Rejects a direction with undefined links; its packets would silently pass without delay.
pub(super) fn check(
    way: &Way,
    answered: bool,
    fields: &Fields<'_>,
    links: &Links,
) -> Result<(), ScenarioError> {
    let (Way::Direction(direction), Some(place)) = (way, fields.get("direction")) else {
        return Ok(());
    };
    let names = links.names();
    let other = match direction {
        Direction::Up => Direction::Down,
        Direction::Down => Direction::Up,
    };
    for (needed, what) in [(direction.name(), "data"), (other.name(), "responses")] {
        if !names.contains(&needed) && (answered || needed == direction.name()) {
            return Err(place.fail(format!(
                "{what} cross the link \"{needed}\", which is not defined; define links.{needed}, or set links.{needed} = \"{UNLIMITED}\" (defined links: {})",
                names.join(", ")
            )));
        }
    }
    Ok(())
}

fn path_of(place: &Place<'_>, links: &[&str]) -> Result<Vec<String>, ScenarioError> {
    const MOST_HOPS: usize = 254;
    let hops = place.list()?;
    if hops.len() > MOST_HOPS {
        return Err(place.fail(format!("too many links; expected at most {MOST_HOPS}")));
    }
    hops.iter()
        .map(|hop| {
            let name = hop.text()?;
            if links.contains(&name) {
                return Ok(name.to_owned());
            }
            let links = links.join(", ");
            // The path of the error is the key's: the name says which hop it is.
            Err(place.fail(format!("unknown link \"{name}\"; expected one of {links}")))
        })
        .collect()
}
