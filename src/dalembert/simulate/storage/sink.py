class FileSink:
    def __init__(self, file, session): raise NotImplementedError
