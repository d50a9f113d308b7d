//! Walls between the crates: what each may import, and where a big dependency may be named at all.

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::{
        modules,
        repository::{display, none, packages, root, text},
    };

    /// What a crate may import.
    struct Wall {
        name: &'static str,
        /// Our own crates.
        ours: &'static [&'static str],
        /// Crates of others that the crate must never depend on.
        never: &'static [&'static str],
    }

    const KUBERNETES: &[&str] = &["kube", "kube-client", "kube-core", "kube-runtime", "k8s-openapi"];
    /// Crates that decide and reach nothing.
    const PURE: &[&str] =
        &["orangery-core", "orangery-ocm", "orangery-proposal", "orangery-policy", "orangery-blueprint"];
    const GUESTS: &[&str] = &["kube", "k8s-openapi", "tokio", "wasmtime", "wasmtime-wasi", "axum", "anyhow"];

    const WALLS: &[Wall] = &[
        Wall { name: "orangery", ours: &["orangery-cli", "orangery-runtime"], never: &["wasmtime", "kube", "axum"] },
        Wall {
            name: "orangery-expression",
            ours: &[],
            never: &["kube", "k8s-openapi", "tokio", "futures", "wasmtime", "anyhow", "tracing"],
        },
        Wall {
            name: "orangery-egress",
            ours: &["orangery-core", "orangery-turns"],
            never: &["kube", "k8s-openapi", "wasmtime", "anyhow", "tracing"],
        },
        Wall {
            name: "orangery-core",
            ours: &["orangery-expression"],
            never: &["kube", "k8s-openapi", "tokio", "tokio-util", "futures", "wasmtime", "anyhow", "uuid", "tracing"],
        },
        Wall {
            name: "orangery-turns",
            ours: &["orangery-core"],
            // The span of whoever asks goes along to another thread.
            never: &["kube", "k8s-openapi", "wasmtime", "anyhow"],
        },
        Wall {
            name: "orangery-figures",
            ours: &[],
            never: &["kube", "k8s-openapi", "tokio", "wasmtime", "anyhow", "prometheus-client"],
        },
        Wall {
            name: "orangery-ocm",
            ours: &["orangery-core"],
            never: &["kube", "k8s-openapi", "tokio", "tokio-util", "futures", "wasmtime", "anyhow", "uuid", "tracing"],
        },
        Wall {
            name: "orangery-proposal",
            ours: &["orangery-core", "orangery-expression", "orangery-ocm"],
            never: &["kube", "k8s-openapi", "tokio", "tokio-util", "futures", "wasmtime", "anyhow", "uuid", "tracing"],
        },
        Wall {
            name: "orangery-policy",
            ours: &["orangery-core", "orangery-expression", "orangery-ocm", "orangery-proposal"],
            never: &["kube", "k8s-openapi", "tokio", "tokio-util", "futures", "wasmtime", "anyhow", "uuid", "tracing"],
        },
        Wall {
            name: "orangery-blueprint",
            ours: &["orangery-core", "orangery-expression", "orangery-ocm", "orangery-proposal"],
            never: &["kube", "k8s-openapi", "tokio", "tokio-util", "futures", "wasmtime", "anyhow", "uuid", "tracing"],
        },
        Wall {
            name: "orangery-api",
            ours: &["orangery-blueprint", "orangery-core", "orangery-ocm", "orangery-policy", "orangery-proposal"],
            never: &["tokio", "wasmtime", "anyhow", "futures"],
        },
        Wall {
            name: "orangery-render",
            ours: &["orangery-blueprint", "orangery-core", "orangery-ocm", "orangery-proposal"],
            never: &["kube", "k8s-openapi", "tokio", "tokio-util", "wasmtime", "anyhow", "axum"],
        },
        Wall {
            name: "orangery-reconcile",
            ours: &["orangery-core", "orangery-figures", "orangery-turns"],
            never: &["wasmtime", "anyhow", "axum"],
        },
        Wall {
            name: "orangery-cluster",
            ours: &["orangery-core", "orangery-egress", "orangery-figures", "orangery-proposal", "orangery-turns"],
            never: &["wasmtime", "anyhow", "axum"],
        },
        Wall {
            name: "orangery-apply",
            ours: &["orangery-cluster", "orangery-core", "orangery-proposal", "orangery-turns"],
            never: &["wasmtime", "anyhow", "axum"],
        },
        Wall {
            name: "orangery-controllers",
            ours: &[
                "orangery-api",
                "orangery-apply",
                "orangery-blueprint",
                "orangery-cluster",
                "orangery-core",
                "orangery-ocm",
                "orangery-policy",
                "orangery-proposal",
                "orangery-reconcile",
                "orangery-render",
                "orangery-turns",
            ],
            never: &["wasmtime", "anyhow", "axum"],
        },
        Wall {
            name: "orangery-plugin",
            ours: &[
                "orangery-blueprint",
                "orangery-core",
                "orangery-figures",
                "orangery-ocm",
                "orangery-proposal",
                "orangery-turns",
            ],
            never: &["kube", "k8s-openapi", "anyhow", "axum"],
        },
        Wall {
            name: "orangery-embedded",
            ours: &["orangery-expression"],
            never: &["kube", "kube-client", "k8s-openapi", "wasmtime", "anyhow"],
        },
        Wall {
            name: "orangery-registry",
            ours: &[
                "orangery-blueprint",
                "orangery-core",
                "orangery-egress",
                "orangery-ocm",
                "orangery-proposal",
                "orangery-turns",
            ],
            never: &["kube", "k8s-openapi", "wasmtime", "anyhow", "axum"],
        },
        Wall {
            name: "orangery-cli",
            ours: &[
                "orangery-api",
                "orangery-blueprint",
                "orangery-builtin",
                "orangery-cluster",
                "orangery-core",
                "orangery-expression",
                "orangery-ocm",
                "orangery-plugin",
                "orangery-policy",
                "orangery-proposal",
                "orangery-registry",
                "orangery-render",
            ],
            never: &["wasmtime", "anyhow", "axum", "redb"],
        },
        Wall {
            name: "orangery-runtime",
            ours: &[
                "orangery-api",
                "orangery-apply",
                "orangery-blueprint",
                "orangery-builtin",
                "orangery-cli",
                "orangery-cluster",
                "orangery-controllers",
                "orangery-core",
                "orangery-embedded",
                "orangery-figures",
                "orangery-ocm",
                "orangery-plugin",
                "orangery-policy",
                "orangery-proposal",
                "orangery-reconcile",
                "orangery-render",
            ],
            never: &["wasmtime", "redb"],
        },
        Wall { name: "orangery-sdk", ours: &[], never: GUESTS },
        Wall { name: "orangery-build", ours: &[], never: GUESTS },
        Wall { name: "orangery-builtin", ours: &["orangery-build"], never: GUESTS },
        Wall { name: "orangery-release", ours: &[], never: GUESTS },
    ];

    /// Of every component that ships with the host.
    const COMPONENT: Wall = Wall { name: "a component", ours: &["orangery-sdk"], never: GUESTS };

    /// Whether a package is a component that ships with the host: its folder has a registration.
    fn is_component(package: &str) -> bool {
        let folder = package.strip_prefix("orangery-").unwrap_or(package);
        root().join("plugins").join(folder).join("plugin.yaml").is_file()
    }

    #[test]
    fn a_crate_imports_only_what_its_wall_allows() {
        let walls: BTreeMap<_, _> = WALLS.iter().map(|wall| (wall.name, wall)).collect();
        let mut violations = Vec::new();
        for package in packages() {
            let known = walls.get(package.name.as_str()).copied();
            let Some(wall) = known.or_else(|| is_component(&package.name).then_some(&COMPONENT)) else { continue };
            for dependency in package.dependencies.iter().filter(|dependency| !dependency.for_tests) {
                let name = dependency.name.as_str();
                let is_ours = name.starts_with("orangery");
                if is_ours && !wall.ours.contains(&name) || wall.never.contains(&name) {
                    violations.push(format!("{} must not import {name}", package.name));
                }
            }
        }
        none("an import crosses a wall (table in tests/tidy/walls.rs)", violations);
    }

    #[test]
    fn every_product_crate_stands_in_the_table_of_walls() {
        let missing = packages().into_iter().map(|package| package.name).filter(|name| {
            let outside =
                ["orangery-tests", "orangery-guests", "orangery-contract-guests", "orangery-fuzz", "orangery-mutants"]
                    .contains(&name.as_str());
            name.starts_with("orangery")
                && !outside
                && !is_component(name)
                && !WALLS.iter().any(|wall| wall.name == name)
        });
        none("add the crate to the table in tests/tidy/walls.rs", missing.collect());
    }

    /// A crate name and the one folder (or file) whose sources may name it.
    const NAMED_ONLY_IN: &[(&str, &[&str])] = &[
        ("wasmtime::", &["host/plugin/"]),
        ("wasmtime_wasi::", &["host/plugin/"]),
        ("bindgen!", &["host/plugin/src/bindings.rs"]),
        ("redb::", &["host/embedded/"]),
        ("hyper_rustls::", &["host/registry/src/oci/connection.rs"]),
        ("prometheus_client::", &["host/runtime/src/metrics"]),
        ("axum::", &["host/embedded/", "host/runtime/"]),
        ("minijinja::", &["plugins/jinja/"]),
        ("anyhow::", &["host/runtime/", "host/src/"]),
        (
            "kube::",
            &[
                "host/api/",
                "host/reconcile/",
                "host/cluster/",
                "host/apply/",
                "host/controllers/",
                "host/cli/",
                "host/runtime/",
            ],
        ),
    ];

    #[test]
    fn big_dependencies_are_named_in_one_place() {
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            let display = display(path);
            if file.for_tests || display.starts_with("tests/") {
                continue;
            }
            for (name, places) in NAMED_ONLY_IN {
                if !places.iter().any(|place| display.starts_with(place)) && names(&text(path), name) {
                    violations.push(format!("{display} names {name}, which belongs to {}", places.join(", ")));
                }
            }
        }
        none("a dependency is named outside of its crate", violations);
    }

    #[test]
    fn orc_07_flx_02_conditions_are_made_in_one_place() {
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            let display = display(path);
            if file.for_tests || display.starts_with("tests/") || display == "host/core/src/condition.rs" {
                continue;
            }
            let named = ["\"Reconciling\"", "\"Stalled\""].into_iter().filter(|name| names(&text(path), name));
            violations.extend(named.map(|name| format!("{display} names {name}, which core::condition alone makes")));
        }
        none("a condition is made by hand", violations);
    }

    /// Whether a line of code, not of comment, has the word on its own.
    fn names(text: &str, word: &str) -> bool {
        let code = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
        code.into_iter().any(|line| {
            line.match_indices(word).any(|(at, _)| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_')
            })
        })
    }

    #[test]
    fn kubernetes_is_no_word_of_the_pure_core() {
        let mut violations = Vec::new();
        for (path, file) in modules::reached() {
            if PURE.contains(&file.package.as_str()) {
                let text = text(path);
                let named = KUBERNETES.iter().map(|name| name.replace('-', "_") + "::").filter(|n| names(&text, n));
                violations.extend(named.map(|name| format!("{} names {name}", display(path))));
            }
        }
        none("core cannot name Kubernetes", violations);
    }
}
