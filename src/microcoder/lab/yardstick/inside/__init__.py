"""Scripts for the disposable process of a judge under test; of this package they import only the judge itself."""
