"""`python -m dalembert.cli`."""

from dalembert.cli.main import main

main()
