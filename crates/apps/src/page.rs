//! Web pages: objects and their dependencies.

use sojourn_net::{Bytes, Duration};

use crate::distributions::Amount;

/// Most objects of a page.
const MOST: usize = 10_000;

/// One object of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// What it is called; unique within the page.
    pub name: String,
    /// Body and header of the response; drawn for each visit.
    pub bytes: Amount,
    /// The objects that must be whole before this one is asked for.
    pub after: Vec<u32>,
    /// How long the client works on them before it asks.
    pub delay: Duration,
    /// How long the server works on the answer.
    pub work: Duration,
    /// Which server has it; each has connections of its own.
    pub origin: u32,
}

/// A page whose objects can all be loaded.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    objects: Vec<Object>,
    /// For each object, those that wait for it.
    dependents: Vec<Vec<u32>>,
    origins: u32,
}

/// Why some objects are no page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageError {
    /// Which object, by its place; `None`: the page as a whole.
    pub object: Option<usize>,
    /// What it must be.
    pub rule: String,
}

impl Page {
    /// The page of these objects.
    ///
    /// # Errors
    /// If there are none, one is empty or depends on what is not there, or some wait for each other.
    pub fn new(objects: Vec<Object>) -> Result<Self, PageError> {
        let fail = |object, rule: String| Err(PageError { object, rule });
        if objects.is_empty() || objects.len() > MOST {
            return fail(None, format!("a page must have 1 to {MOST} objects"));
        }
        let mut dependents = vec![Vec::new(); objects.len()];
        for (n, object) in objects.iter().enumerate() {
            if object.bytes == Amount::Fixed(Bytes(0)) {
                return fail(Some(n), "an object must have at least one byte".to_owned());
            }
            for &first in &object.after {
                let Some(waiting) = dependents.get_mut(first as usize) else {
                    return fail(
                        Some(n),
                        format!("waits for object {first}, which does not exist"),
                    );
                };
                waiting.push(u32::try_from(n).unwrap_or(u32::MAX));
            }
        }
        let origins = objects.iter().map(|o| o.origin + 1).max().unwrap_or(1);
        let page = Self {
            objects,
            dependents,
            origins,
        };
        match page.first_in_a_cycle() {
            None => Ok(page),
            Some(n) => fail(Some(n), page.cycle_through(n)),
        }
    }

    /// The objects, in their order.
    pub fn objects(&self) -> &[Object] {
        &self.objects
    }

    /// Those that wait for object number `n`.
    pub(crate) fn dependents(&self, n: u32) -> &[u32] {
        &self.dependents[n as usize]
    }

    pub(crate) const fn origins(&self) -> u32 {
        self.origins
    }

    /// How many objects each waits for.
    pub(crate) fn waits(&self) -> Vec<u32> {
        let waits = self.objects.iter().map(|o| o.after.len());
        waits
            .map(|n| u32::try_from(n).unwrap_or(u32::MAX))
            .collect()
    }

    /// The first object that waits, in the end, for itself.
    fn first_in_a_cycle(&self) -> Option<usize> {
        let mut waits = self.waits();
        let mut loaded: Vec<usize> = (0..waits.len()).filter(|&n| waits[n] == 0).collect();
        let mut next = 0;
        while let Some(&n) = loaded.get(next) {
            next += 1;
            for &waiting in &self.dependents[n] {
                let waiting = waiting as usize;
                waits[waiting] -= 1;
                if waits[waiting] == 0 {
                    loaded.push(waiting);
                }
            }
        }
        // Some of what is left only waits for a cycle: go back until an object comes again.
        let mut at = (0..waits.len()).find(|&n| waits[n] > 0)?;
        let mut seen = vec![false; waits.len()];
        while !seen[at] {
            seen[at] = true;
            let after = &self.objects[at].after;
            at = after.iter().map(|&a| a as usize).find(|&a| waits[a] > 0)?;
        }
        Some(at)
    }

    fn cycle_through(&self, start: usize) -> String {
        let mut reached_from = vec![None; self.objects.len()];
        let mut found = vec![start];
        let mut next = 0;
        // Breadth first, so that the reported cycle is a shortest one.
        while let Some(&n) = found.get(next) {
            next += 1;
            for &before in &self.objects[n].after {
                let before = before as usize;
                if reached_from[before].is_none() {
                    reached_from[before] = Some(n);
                    found.push(before);
                }
            }
        }
        let name = |n: usize| format!("\"{}\"", self.objects[n].name);
        let mut names = vec![name(start)];
        let mut at = start;
        while let Some(n) = reached_from[at] {
            names.push(name(n));
            at = n;
            if at == start {
                break;
            }
        }
        names.reverse();
        format!("circular dependency: {}", names.join(" after "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(name: &str, after: &[u32]) -> Object {
        Object {
            name: name.to_owned(),
            bytes: Amount::Fixed(Bytes(1_000)),
            after: after.to_vec(),
            delay: Duration::ZERO,
            work: Duration::ZERO,
            origin: 0,
        }
    }

    #[test]
    fn a_cycle_is_reported_with_its_names() {
        let objects = vec![
            object("html", &[]),
            object("late", &[3]),
            object("a", &[0, 3]),
            object("b", &[2]),
        ];
        let error = Page::new(objects).unwrap_err();
        assert_eq!(error.object, Some(3));
        assert_eq!(
            error.rule,
            "circular dependency: \"b\" after \"a\" after \"b\""
        );
        let error = Page::new(vec![object("self", &[0])]).unwrap_err();
        assert_eq!(error.rule, "circular dependency: \"self\" after \"self\"");
    }

    #[test]
    fn what_cannot_be_loaded_is_refused() {
        assert_eq!(Page::new(Vec::new()).unwrap_err().object, None);
        let error = Page::new(vec![object("html", &[7])]).unwrap_err();
        assert_eq!(error.rule, "waits for object 7, which does not exist");
        let empty = Object {
            bytes: Amount::Fixed(Bytes(0)),
            ..object("html", &[])
        };
        let error = Page::new(vec![empty]).unwrap_err();
        assert_eq!(error.rule, "an object must have at least one byte");
    }

    #[test]
    fn a_tree_and_a_diamond_are_pages() {
        let tree = vec![object("html", &[]), object("a", &[0]), object("b", &[0])];
        assert_eq!(Page::new(tree).unwrap().dependents(0), [1, 2]);
        let diamond = vec![
            object("end", &[1, 2]),
            object("a", &[3]),
            object("b", &[3]),
            object("html", &[]),
        ];
        assert_eq!(Page::new(diamond).unwrap().waits(), [2, 1, 1, 0]);
    }
}
