# Momentseek with its page, its offline encoders, speech recognition, OCR, and what assistants and a cluster need.
#   docker build -t momentseek .
#   docker run -p 8765:8765 -e MOMENTSEEK_TOKEN="$TOKEN" -v films:/library -v ~/Videos:/videos:ro momentseek
FROM python:3.12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml hatch_build.py constraints.txt README.md LICENSE CHANGELOG.md ./
COPY src ./src
RUN pip install --no-cache-dir --prefix=/installed -c constraints.txt ".[offline,speech,ocr,serve,mcp,postgres,cluster]"

FROM python:3.12-slim
COPY --from=build /installed /usr/local
RUN useradd --uid 10001 --create-home momentseek \
    && install -d -o momentseek -g momentseek /library /models /videos
USER momentseek
ENV MOMENTSEEK_LIBRARY=/library/films MOMENTSEEK_MODELS=/models PYTHONUNBUFFERED=1
# clip-words has no licence, so it is not put into an image: docker run -v models:/models momentseek models get --yes
RUN momentseek models get --yes minilm things clip
VOLUME /library /models
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8765/', timeout=4)"]
ENTRYPOINT ["momentseek"]
CMD ["serve", "--host", "0.0.0.0", "--port", "8765", "--folder", "/videos", "--watch"]
