//! Checks a graph of named things that depend on each other. Knows nothing of quests.

use std::collections::BTreeMap;

/// What is wrong with a graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    #[error("`{0}` is there twice")]
    Twice(String),
    #[error("`{of}` depends on `{on}`, which does not exist")]
    Missing { of: String, on: String },
    #[error("these depend on each other: {}", .0.join(" → "))]
    Cycle(Vec<String>),
}

/// Checks that every name occurs once, that every dependency exists, and that there is no cycle. A cycle is returned as the path through
/// it, with the first name repeated at the end.
pub fn check<'a>(nodes: impl IntoIterator<Item = (&'a str, Vec<&'a str>)>) -> Result<(), GraphError> {
    let mut graph: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (name, needs) in nodes {
        if graph.insert(name, needs).is_some() {
            return Err(GraphError::Twice(name.to_owned()));
        }
    }
    for (name, needs) in &graph {
        if let Some(on) = needs.iter().find(|on| !graph.contains_key(*on)) {
            return Err(GraphError::Missing { of: (*name).to_owned(), on: (*on).to_owned() });
        }
    }
    let mut seen = BTreeMap::new();
    match graph.keys().find_map(|name| cycle_from(name, &graph, &mut seen)) {
        Some(path) => Err(GraphError::Cycle(path)),
        None => Ok(()),
    }
}

#[derive(PartialEq)]
enum NodeState {
    OnThePath,
    Harmless,
}

/// Follows all paths from a name. Not recursive, because a plan comes from a model and its longest path can have as many steps as the plan.
fn cycle_from<'a>(
    start: &'a str,
    graph: &BTreeMap<&'a str, Vec<&'a str>>,
    seen: &mut BTreeMap<&'a str, NodeState>,
) -> Option<Vec<String>> {
    if seen.contains_key(start) {
        return None;
    }
    seen.insert(start, NodeState::OnThePath);
    // Each name on the path, and how many of its dependencies were followed.
    let mut path = vec![(start, 0)];
    while let Some((name, next)) = path.last_mut() {
        let Some(need) = graph[*name].get(*next).copied() else {
            seen.insert(name, NodeState::Harmless);
            path.pop();
            continue;
        };
        *next += 1;
        match seen.get(need) {
            Some(NodeState::Harmless) => {}
            Some(NodeState::OnThePath) => {
                let names = path.iter().map(|(name, _)| *name).skip_while(|name| *name != need);
                return Some(names.chain([need]).map(str::to_owned).collect());
            }
            None => {
                seen.insert(need, NodeState::OnThePath);
                path.push((need, 0));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(graph: &[(&str, &[&str])]) -> Result<(), GraphError> {
        check(graph.iter().map(|(name, needs)| (*name, needs.to_vec())))
    }

    #[test]
    fn what_can_be_worked_off_is_accepted() {
        assert_eq!(checked(&[]), Ok(()));
        assert_eq!(checked(&[("a", &[]), ("b", &["a"]), ("c", &["a", "b"]), ("d", &["b", "c", "a"])]), Ok(()));
    }

    #[test]
    fn what_cannot_is_refused_with_the_reason() {
        assert_eq!(checked(&[("a", &[]), ("a", &[])]), Err(GraphError::Twice("a".into())));
        assert_eq!(checked(&[("a", &["b"])]), Err(GraphError::Missing { of: "a".into(), on: "b".into() }));
        assert_eq!(checked(&[("a", &["a"])]), Err(GraphError::Cycle(vec!["a".into(), "a".into()])));
        let cycle = checked(&[("x", &["b"]), ("a", &["c"]), ("b", &["a"]), ("c", &["b"])]);
        assert_eq!(cycle, Err(GraphError::Cycle(["a", "c", "b", "a"].map(str::to_owned).into())));
        assert_eq!(cycle.unwrap_err().to_string(), "these depend on each other: a → c → b → a");
    }

    #[test]
    fn a_long_chain_is_no_trouble() {
        let names: Vec<String> = (0..50_000).map(|n| format!("{n:05}")).collect();
        let needs = |n: usize| names.get(n + 1).map(String::as_str).into_iter().collect();
        assert_eq!(check(names.iter().enumerate().map(|(n, name)| (name.as_str(), needs(n)))), Ok(()));
    }
}
