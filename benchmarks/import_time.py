"""What it costs to start: every worker of a ladder pays it once a fit."""


class Import:
    params = ["import engine", "from engine import train", "import ladders.worker", "import ladders.cli"]
    param_names = ("statement",)
    version = "1"
    rounds = 2
    repeat = 4
    number = 1
    timeout = 120

    def timeraw_import(self, statement):
        return statement


class Memory:
    params = Import.params
    param_names = Import.param_names
    version = "1"

    def peakmem_import(self, statement):
        exec(statement)
